"""The verbs of django_tenantqueue.control: what they take, what they return, what they record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import connections
from django.utils import timezone

from django_tenantqueue import ConcurrentJobMonitor, Job, Priority, control, reports
from django_tenantqueue.exceptions import (
    InvalidArgument,
    InvalidOption,
    InvalidState,
    JobNotFound,
    QueueRetired,
    UnknownQueue,
    Unsupported,
)
from django_tenantqueue.models import Change, Session, TaskControl, TenantQueue, Worker
from django_tenantqueue.models.worker import Role
from django_tenantqueue.operations.verbs import CORE
from django_tenantqueue.testing import run_pending
from tests.factories import (
    made_changes,
    make_job,
    make_jobs,
    make_queue,
    make_worker,
    state_of,
)
from tests.testapp.models import Plain
from tests.testapp.tasks import add, echo, fail, fail_for_good, noop

pytestmark = pytest.mark.django_db

WITHOUT_TWIN = {"acting_as", "current_actor", "Result", "FleetReport", "Need", "QueueLoad"}
"""Public names that read and write no rows."""
NOBODY = 1_987_654_321
"""An id that no row has."""


def actions() -> list[str]:
    return [action for action, _, _ in made_changes()]


def empty(result: control.Result) -> bool:
    return result == control.Result([], [], [], {})


# the surface


@pytest.mark.parametrize("module", [control, reports])
def test_each_public_function_has_a_twin(module: Any) -> None:
    names = set(module.__all__)
    twins = {name for name in names if name[:1] == "a" and name[1:] in names}

    assert {f"a{name}" for name in names - twins - WITHOUT_TWIN} == twins
    for name in twins:
        twin, function = getattr(module, name), getattr(module, name[1:])
        assert inspect.iscoroutinefunction(twin)
        assert inspect.signature(twin) == inspect.signature(function)
        assert (twin.__name__, twin.__doc__) == (name, f"See {name[1:]}().")
        assert function.__doc__


@pytest.mark.parametrize("model", [Job, TenantQueue, ConcurrentJobMonitor])
def test_each_method_of_a_row_has_a_twin(model: Any) -> None:
    verbs = {verb for verb in CORE[model] if verb in vars(model) and verb != "delete"}

    assert verbs
    for verb in verbs:
        assert inspect.iscoroutinefunction(vars(model)[f"a{verb}"])


def test_using_is_the_last_keyword_and_no_name_is_internal() -> None:
    for name in control.__all__:
        function = getattr(control, name)
        if inspect.isfunction(function) and "using" in inspect.signature(function).parameters:
            found = inspect.signature(function).parameters
            assert found["using"].kind == inspect.Parameter.KEYWORD_ONLY
            last = [one for one, p in found.items() if p.kind != inspect.Parameter.VAR_KEYWORD][-1]
            assert last == "using", name


# what is acted on


TARGETS: dict[str, Callable[[list[Job]], Any]] = {
    "row": lambda jobs: jobs[0],
    "id": lambda jobs: jobs[0].pk,
    "rows": lambda jobs: jobs,
    "ids": lambda jobs: [job.pk for job in jobs],
    "both": lambda jobs: (jobs[0], jobs[1].pk),
    "generator": lambda jobs: (job.pk for job in jobs),
    "set": lambda jobs: {job.pk for job in jobs},
    "queryset": lambda jobs: Job.objects.filter(pk__in=[job.pk for job in jobs]),
    "slice": lambda jobs: Job.objects.filter(pk__in=[job.pk for job in jobs]).order_by("pk")[:1],
    "values": lambda jobs: Job.objects.order_by("pk").values_list("pk", flat=True),
}
ONE = ("row", "id", "slice")


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("is_keyword", [False, True])
@pytest.mark.parametrize(
    ("verb", "state"),
    [
        (control.cancel, "ready"),
        (control.retry, "error"),
        (control.run_now, "scheduled"),
        (control.delete, "success"),
    ],
)
def test_verbs_take_jobs_in_each_form(
    verb: Callable[..., control.Result], state: str, kind: str, is_keyword: bool
) -> None:
    queue = make_queue()
    later = timezone.now() + timedelta(hours=1)
    jobs = [make_job(queue, state=state, run_at=later) for _ in range(2)]
    target = TARGETS[kind](jobs)

    result = verb(job=target) if is_keyword else verb(target)

    changed = [job.pk for job in (jobs[:1] if kind in ONE else jobs)]
    assert result == control.Result(changed, [], [], {})
    assert len(Change.objects.all()) == 1
    assert Change.objects.get().object_ids == changed


@pytest.mark.parametrize("verb", [control.cancel, control.retry, control.run_now, control.delete])
def test_unknown_ids_are_refused(verb: Callable[..., control.Result]) -> None:
    assert verb([NOBODY]).refused == {NOBODY: "there is no such job"}
    assert not Change.objects.exists()


@pytest.mark.parametrize("nothing", [[], (), Job.objects.none()])
def test_nothing_is_done_to_no_rows(nothing: Any) -> None:
    assert empty(control.cancel(nothing))
    assert empty(control.retry(job=nothing))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: control.cancel(), r"cancel\(\) needs rows or ids.* job=, monitor="),
        (lambda: control.pause(), r"pause\(\) needs rows or ids.*queue=, task="),
        (lambda: control.pause(None), r"pause\(None\): give a row"),
        (lambda: control.pause(session=None, tenant="acme"), r"session=None\): None is no session"),
        (lambda: control.tune(queue=None, tenant="acme", num_slots=1), "None is no queue"),
        (lambda: control.cancel(2**63), "ids go from 1 to 9223372036854775807"),
        (lambda: control.pause(queue="mail", tenant="nope"), "tenant 'nope' has no queue of that"),
        (lambda: control.pause(task="x\0", allow_unknown=True), "without NUL"),
        (lambda: control.pause(task="", allow_unknown=True), "from 1 to 500 characters"),
        (lambda: control.pause(task="x" * 501, allow_unknown=True), "from 1 to 500 characters"),
        (lambda: control.stop(worker="a\0"), "without NUL"),
        (lambda: control.move(1, queue=TenantQueue(tenant="a", name="b")), "has no row"),
        (lambda: control.tune(Job(pk=1), priority="x"), "priority='x': it must be an int"),
        (lambda: control.bulk("cancel", {}), "None, and not an empty dict, acts on all jobs"),
        (lambda: control.bulk("cancel", "x"), "give filters"),  # type: ignore[arg-type]
        (lambda: control.bulk("cancel", None, user="root"), "give a user"),  # type: ignore[arg-type]
        (lambda: control.bulk("change_priority", None), "needs the value 'priority'"),
        (lambda: control.pause(7), r"the id may be one of several .* pause\(queue=7\)"),
        (lambda: control.retire([7]), r"retire\(queue=7\)"),
        (lambda: control.tune(7, num_slots=3), r"tune\(job=7\)"),
        (lambda: control.pause("mail"), r"pause\(queue='mail'\)"),
        (lambda: control.cancel("17"), r"cancel\('17'\): give a row, a queryset, an id \(an int\)"),
        (lambda: control.cancel(True), r"cancel\(True\): give a row"),
        (lambda: control.cancel(1, job=2), "one keyword, not both"),
        (lambda: control.pause(queue=1, task="x"), "one keyword, not both"),
        (lambda: control.pause(TenantQueue(pk=1), tenant="acme"), "not both"),
        (lambda: control.cancel(TenantQueue(pk=1)), r"cancel\(\) takes jobs, monitors, and no"),
        (lambda: control.pause(Job(pk=1)), r"pause\(\) takes .*and no jobs"),
        (lambda: control.pause(queue=Job(pk=1)), "a row of another kind: job"),
        (lambda: control.cancel(Plain()), "has no row"),
        (lambda: control.cancel(Job.objects), r"cancel\(….all\(\)\)"),
        (lambda: control.pause([TenantQueue(pk=1), Session(pk=2)]), "once for each kind of row"),
        (lambda: control.pause(task="x", tenant="acme"), "for all tenants"),
        (lambda: control.pause(queue=7, tenant="acme"), "tenant= belongs to names"),
        (lambda: control.pause(task="tests.testapp.tasks.nop"), "Did you mean"),
        (lambda: control.tune(queue="x"), "needs columns to write"),
        (lambda: control.cancel(queue="x"), r"bulk\('cancel', \{'queue'"),
        (lambda: control.cancel(task="x"), "needs one task, and error_class="),
        (lambda: control.retry(task="x", error_class="E"), "needs since="),
        (lambda: control.retry(1, task="x", error_class="E", since=timedelta(1)), "no other rows"),
        (lambda: control.cancel(task="x", error_class="E", limit=0), "limit=0"),
        (
            lambda: control.cancel(task="tests.testapp.tasks.nop", error_class="E"),
            "no such job.* Did",
        ),
        (lambda: control.retry(task="x", error_class="E", since="x"), "since='x': it must be"),
        (lambda: control.retry(task="x", error_class="E", since=timedelta(-1)), "how long ago"),
    ],
)
def test_wrong_calls_say_what_to_do(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        call()
    assert not Change.objects.exists()


# jobs


def test_cancel_says_what_ends_at_once_and_what_later() -> None:
    queue = make_queue()
    waiting, running = make_job(queue), make_job(queue, state="running")
    done = make_job(queue, state="success")

    result = control.cancel([waiting, running, done, NOBODY])

    assert result.changed == [waiting.pk]
    assert result.requested == [running.pk]
    assert result.unchanged == [done.pk]
    assert result.refused == {NOBODY: "there is no such job"}
    assert actions() == ["cancel"]


def test_retry_says_why_jobs_are_refused() -> None:
    queue = make_queue()
    failed, going, succeeded = (
        make_job(queue, state=state) for state in ("error", "ready", "success")
    )

    result = control.retry([failed, going, succeeded])

    assert result.changed == [failed.pk]
    assert result.unchanged == [going.pk]
    assert "enqueue_again() enqueues a new one" in result.refused[succeeded.pk]


def test_retry_refuses_details_of_a_cancelled_monitor() -> None:
    monitor = ConcurrentJobMonitor.objects.start("m", [noop.call()] * 2, parallel=1)
    ids = list(monitor.details().values_list("pk", flat=True))
    assert monitor.cancel().changed == [monitor.pk]

    result = control.retry(ids)

    assert set(result.refused) == set(ids)
    assert set(result.refused.values()) == {"its monitor was cancelled: start another monitor"}
    assert control.retry(monitor).refused == {monitor.pk: "it was cancelled: start another monitor"}


def test_run_now_refuses_what_waits_for_something_else() -> None:
    queue = make_queue()
    ready, done = make_job(queue), make_job(queue, state="error")
    held = make_job(queue, state="held", held_by="limit_user", limit_user="acme/7")

    result = control.run_now([ready, done, held])

    assert result.unchanged == [ready.pk, done.pk]
    assert list(result.refused) == [held.pk]


def test_delete_refuses_what_has_not_ended() -> None:
    job = make_job()

    assert control.delete(job).refused == {job.pk: "it has not ended: cancel it first"}


def test_jobs_move_to_a_queue_of_their_tenant_or_of_another() -> None:
    mine, other = make_queue("acme"), make_queue("globex")
    there = make_queue("acme", "slow")
    jobs = [make_job(mine), make_job(other), make_job(there), make_job(mine, state="running")]
    bound = make_job(other, session_key="globex/s")

    result = control.move(jobs, queue="slow")

    assert result == control.Result([jobs[0].pk, jobs[1].pk], [], [jobs[2].pk, jobs[3].pk], {})
    assert jobs[1].refresh().queue.tenant == "globex"
    assert list(control.move([bound, jobs[0]], queue=there).refused) == [bound.pk]
    assert control.move(bound, queue="x", tenant="globex").changed == [bound.pk]
    assert actions() == ["move"] * 3  # one of each tenant


def test_move_rejects_what_is_no_goal() -> None:
    queue = make_queue("acme", retired=True)
    job = make_job(make_queue("acme", "other"))

    with pytest.raises(QueueRetired):
        control.move(job, queue=queue)
    with pytest.raises(InvalidOption, match="belongs to 'acme'"):
        control.move(job, queue=queue, tenant="globex")
    with pytest.raises(InvalidOption, match="queue=''"):
        control.move(job, queue="")


def test_jobs_are_tuned() -> None:
    queue = make_queue()
    first, second = make_job(queue, priority=100), make_job(queue, priority=120)
    running = make_job(queue, state="running")

    result = control.tune([first, second, running], priority=120)

    assert result == control.Result([first.pk], [], [second.pk, running.pk], {})
    assert control.tune(job=first, run_at=timedelta(hours=1)).changed == [first.pk]
    assert state_of(first.pk) == "scheduled"
    with pytest.raises(InvalidOption, match="'state' cannot be tuned"):
        control.tune(first, state="error")
    assert control.tune(Job(pk=NOBODY), priority=1).refused


def error(cls: str) -> dict[str, Any]:
    return {"at": timezone.now().isoformat(), "attempt": 1, "class": cls, "message": "m"}


def test_jobs_of_a_group_of_failures_are_retried_and_cancelled() -> None:
    mine, other = make_queue("acme", "mail"), make_queue("globex", "mail")
    failed = [
        make_job(queue, state="error", task=noop.name, errors=[error("KeyError")])
        for queue in (mine, mine, other)
    ]
    group: dict[str, Any] = {"task": noop, "error_class": "KeyError"}

    first = control.retry(**group, since=timedelta(hours=1), queue="mail", tenant="acme", limit=1)
    rest = control.retry(**group, since=timezone.now() - timedelta(hours=1))

    assert (len(first.changed), first.more) == (1, True)
    assert set(first.changed) <= {failed[0].pk, failed[1].pk}
    assert sorted(first.changed + rest.changed) == [job.pk for job in failed]
    assert not rest.more
    columns = {"task": noop.name, "errors": [error("KeyError")], "attempt": 1}
    waiting = make_job(other, state="scheduled", **columns)
    assert empty(control.cancel(**group, tenant="acme"))
    assert control.cancel(**group).changed == [waiting.pk]
    with pytest.raises(InvalidOption, match="naive"):
        control.retry(**group, since=timezone.make_naive(timezone.now()))


def test_job_is_enqueued_again_with_its_arguments_or_others() -> None:
    job = add.delay(1, second=2)
    report = echo.delay(timezone.now())

    same = control.enqueue_again(job)
    other = control.enqueue_again(job.pk, (5,), queue="slow", run_at=timedelta(hours=1)).refresh()
    timed = control.enqueue_again(report)

    assert same.refresh().args == job.refresh().args
    assert other.args["args"] == [5]
    assert (other.state, other.queue.name) == ("scheduled", "slow")
    assert timed.refresh().args == report.refresh().args
    with pytest.raises(JobNotFound):
        control.enqueue_again(NOBODY)
    with pytest.raises(TypeError):
        control.enqueue_again(job, (1, 2, 3))


# queues, tasks, sessions, users, monitors


def test_queues_are_paused_by_row_id_name_and_tenant() -> None:
    mail, files = make_queue("acme", "mail"), make_queue("acme", "files")
    other = make_queue("globex", "mail")

    assert control.pause(mail).changed == [mail.pk]
    assert control.pause(queue=[mail, files.pk]) == control.Result([files.pk], [], [mail.pk], {})
    assert control.resume(queue="mail").changed == [mail.pk]
    assert control.pause(queue="mail").changed == [mail.pk, other.pk]
    assert control.resume(queue="mail", tenant="globex").changed == [other.pk]
    assert control.resume(tenant="acme").changed == [mail.pk, files.pk]
    assert control.pause(queue=["mail", "files"], tenant="acme").changed == [mail.pk, files.pk]
    assert control.pause(TenantQueue.objects.filter(tenant="globex")).changed == [other.pk]
    assert control.pause(queue=NOBODY).refused == {NOBODY: "there is no such tenant queue"}
    assert actions() == ["pause", "pause", "resume", "pause", "resume", "resume", "pause", "pause"]
    for wrong in ({"queue": "mial"}, {"queue": "mail", "tenant": "x"}, {"tenant": "x"}):
        with pytest.raises(UnknownQueue):
            control.pause(**wrong)


def test_queues_are_retired_reopened_and_tuned() -> None:
    queue = make_queue("acme", "mail", num_slots=5)

    assert control.retire(queue="mail").changed == [queue.pk]
    assert control.reopen(queue).changed == [queue.pk]
    assert control.tune(queue, num_slots=7, weight=1).changed == [queue.pk]
    assert control.tune(queue="mail", tenant="acme", num_slots=7).unchanged == [queue.pk]
    assert control.tune(tenant="acme", max_waiting=9).changed == [queue.pk]
    assert actions() == ["retire", "reopen", "tune", "tune"]
    with pytest.raises(ValidationError):
        control.tune(queue, num_slots=-1)
    with pytest.raises(InvalidOption, match="'name' cannot be tuned"):
        control.tune(queue, name="x")


def test_one_entry_is_left_when_several_queues_are_tuned() -> None:
    queues = [make_queue("acme", name, num_slots=5) for name in ("a", "b")]

    control.tune(queues, num_slots=6)

    change = Change.objects.get()
    assert change.object_ids == [queue.pk for queue in queues]
    assert (change.before, change.after) == ({"num_slots": 5}, {"num_slots": 6})


@pytest.mark.parametrize("task", [noop, noop.name])
def test_tasks_are_controlled_by_themselves_and_by_name(task: Any) -> None:
    assert empty(control.resume(task=task))
    (pk,) = control.pause(task=task).changed
    row = TaskControl.objects.get()
    assert (row.pk, row.task, row.paused) == (pk, noop.name, True)
    assert control.pause(task=[noop, noop.name]).unchanged == [pk]
    assert control.resume(task=task).changed == [pk]
    assert control.tune(task=task, num_slots=3, max_per_second=5).changed == [pk]
    assert control.tune(row, num_slots=4).changed == [pk]
    assert control.pause(row).changed == [pk]
    assert control.delete(task=task).changed == [pk]
    assert actions() == ["pause", "resume", "tune", "tune", "pause", "delete"]


def test_task_stands_in_front_too() -> None:
    (pk,) = control.pause(noop).changed

    assert control.tune(noop, num_slots=1).changed == [pk]
    assert control.resume([noop, fail]).changed == [pk]
    assert control.delete(noop).changed == [pk]


def test_unknown_task_is_controlled_when_it_may_be() -> None:
    with pytest.raises(InvalidOption, match="allow_unknown=True"):
        control.pause(task="elsewhere")
    assert control.pause(task="elsewhere", allow_unknown=True).changed
    assert control.tune(task="elsewhere", num_slots=3).changed
    assert control.tune(task="other", num_slots=3, allow_unknown=True).changed
    with pytest.raises(InvalidOption, match="no task, method or finished job is named 'typo'"):
        control.resume(task="typo")


def test_sessions_are_found_and_made_by_key() -> None:
    assert empty(control.resume(session="s", tenant="acme"))
    (pk,) = control.pause(session="s", tenant="acme").changed
    row = Session.objects.get()
    assert (row.pk, row.kind, row.gate_key) == (pk, "serial", "acme/s")
    job = noop.using(tenant="acme", session="s").delay()
    assert run_pending() == []
    assert control.pause(session="s").unchanged == [pk]
    assert control.tune(session="s", tenant="acme", on_failure="halt").changed == [pk]
    assert control.resume(row).changed == [pk]
    assert [ran.pk for ran in run_pending()] == [job.pk]
    with pytest.raises(InvalidOption, match="no tenant has a row of that key"):
        control.pause(session="unknown")


def test_users_are_found_and_made_by_key() -> None:
    row = control.limit_user("acme", 7, 3)
    everyone = control.limit_user("acme", None, 5)

    assert (row.kind, row.key, row.num_slots) == ("limit_user", "7", 3)
    assert (everyone.key, everyone.num_slots) == ("", 5)
    assert control.limit_user("acme", "7", None).pk == row.pk
    assert control.pause(limit_user=7, tenant="acme").changed == [row.pk]
    assert control.resume(limit_user=["7"]).changed == [row.pk]
    assert control.tune(limit_user="8", tenant="acme", num_slots=1).changed
    assert Session.objects.user_limits().count() == 3
    with pytest.raises(ValidationError):
        control.limit_user("acme", 7, -1)
    for number in (True, False):
        with pytest.raises(ValidationError, match="Enter a number"):
            control.limit_user("acme", 7, number)
        with pytest.raises(ValidationError, match="Enter a number"):
            control.tune(row, num_slots=number)


def test_monitor_is_paused_tuned_cancelled_and_retried() -> None:
    calls = [fail_for_good.call(), noop.call()]
    monitor = ConcurrentJobMonitor.objects.start("m", calls, parallel=2)

    assert control.pause(monitor=monitor.pk).changed == [monitor.pk]
    assert monitor.pause().unchanged == [monitor.pk]
    assert monitor.resume().changed == [monitor.pk]
    assert monitor.tune(parallel=1).changed == [monitor.pk]
    run_pending()
    assert control.retry(monitor=monitor).changed == [monitor.pk]
    assert monitor.retry().unchanged == [monitor.pk]
    assert control.cancel(monitor).changed == [monitor.pk]
    assert control.cancel(monitor=[monitor]).unchanged == [monitor.pk]
    assert actions() == ["pause", "resume", "tune", "retry", "cancel"]


def test_monitor_is_requested_when_details_still_run() -> None:
    monitor = ConcurrentJobMonitor.objects.start("m", [noop.call()] * 2, parallel=1)
    detail = monitor.details().order_by("pk")[0]
    Job.objects.filter(pk=detail.pk).update(
        state="running", held_by=None, worker=make_worker(), queued_at=timezone.now()
    )

    result = control.cancel(monitor)

    assert result == control.Result([], [monitor.pk], [], {})


# workers


def test_workers_are_asked_to_end() -> None:
    first, second = make_worker(name="a"), make_worker(name="b")
    runner = make_worker(name="c", role=Role.RUNNER, executor="celery")

    result = control.drain([first.pk, runner, NOBODY])

    assert result.requested == [first.pk]
    assert set(result.refused) == {runner.pk, NOBODY}
    assert control.drain(Worker.objects.filter(name="a")).unchanged == [first.pk]
    assert control.stop(worker=["a", "b"]).requested == [first.pk, second.pk]
    assert actions() == ["drain", "stop"]
    with pytest.raises(InvalidOption, match="no worker of that name"):
        control.stop(worker="d")


# the rest


def test_queue_is_made_or_changed() -> None:
    queue = control.make_queue("acme", "mail", num_slots=7)

    assert control.make_queue("acme", "mail", weight=2).pk == queue.pk
    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight) == (7, 2)


def test_exception_class_names_the_error() -> None:
    failed = make_job(state="error", task=noop.name, errors=[{**error("KeyError")}])
    other = make_job(state="error", task=noop.name, errors=[error("ValueError")])

    done = control.retry(task=noop, error_class=KeyError, since=3600)

    assert done.changed == [failed.pk]
    assert state_of(other.pk) == "error"


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"weight": 0}, "'weight': .*greater than or equal to 1"),
        ({"max_per_second": float("nan")}, "'max_per_second': .*Enter a number"),
        ({"max_per_second": 10**400}, "'max_per_second': "),
        ({"num_slots": float("inf")}, "'num_slots': .*Enter a number"),
        ({"num_slots": 1.5}, "'num_slots': .*whole number"),
    ],
)
def test_bad_value_names_its_column(columns: dict[str, Any], said: str) -> None:
    queue = make_queue("acme")

    with pytest.raises(ValidationError, match=said):
        control.tune(queue, **columns)

    assert not Change.objects.exists()


def test_executor_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOption, match="executor="):
        control.tune(make_queue("acme"), executor=[])


def test_interval_is_seconds_or_timedelta() -> None:
    monitor = ConcurrentJobMonitor.objects.start("m", [noop.call()], parallel=1)

    control.tune(monitor, interval_seconds=timedelta(seconds=5))

    monitor.refresh_from_db()
    assert monitor.interval_seconds == 5.0


def test_rows_of_a_session_and_of_a_user_have_columns_of_their_own() -> None:
    with pytest.raises(InvalidOption, match="'num_slots' cannot be tuned"):
        control.tune(session="s", tenant="acme", num_slots=1)
    with pytest.raises(InvalidOption, match="'on_wait' cannot be tuned"):
        control.tune(limit_user="u", tenant="acme", on_wait="skip")
    assert not Session.objects.exists()


def test_rows_of_another_database_are_refused() -> None:
    queue = make_queue("acme")
    theirs = TenantQueue.objects.get()
    theirs._state.db = "other"

    for call in (theirs.pause, lambda: control.cancel(Job.objects.using("other"))):
        with pytest.raises(InvalidOption, match=r"from the database 'other'.* using='other'"):
            call()

    queue.refresh_from_db()
    assert not queue.paused


def test_rows_of_a_replica_are_those_of_its_primary() -> None:
    queue = make_queue("acme")
    read = TenantQueue.objects.get()
    read._state.db = "replica"
    settings = connections.settings
    with mock.patch.dict(settings, {"replica": {"TEST": {"MIRROR": "default"}}}):
        assert control.pause(read).changed == [queue.pk]


def test_new_monitor_is_started_and_not_saved() -> None:
    with pytest.raises(Unsupported, match=r"ConcurrentJobMonitor.objects.start\("):
        ConcurrentJobMonitor.objects.create(name="m")


def test_queue_with_jobs_is_not_deleted() -> None:
    queue, ended, empty = make_queue("acme"), make_queue("acme", "old"), make_queue("acme", "new")
    make_job(queue), make_job(ended, state="success")

    for one in (queue, ended):
        with pytest.raises(InvalidState, match=r"it has jobs. control.retire\(queue\)"):
            one.delete()
    empty.delete()

    assert set(TenantQueue.objects.all()) == {queue, ended}


def test_monitor_with_waiting_jobs_is_not_deleted() -> None:
    monitor = ConcurrentJobMonitor.objects.start("m", [noop.call()], parallel=1)

    with pytest.raises(InvalidState, match=r"Cancel it first"):
        monitor.delete()
    monitor.cancel()
    monitor.delete()

    assert not ConcurrentJobMonitor.objects.exists()


def test_bulk_calls_the_task_by_its_word() -> None:
    make_jobs(make_queue(), 2, state="error", task=noop.name)

    job = control.bulk("retry", {"task": noop.name, "state": "error"})

    assert job.refresh().args["kwargs"]["filters"]["task"] == noop.name
    with pytest.raises(InvalidArgument):
        control.bulk("retry", {"tasks": "x"})


def test_tenant_is_erased() -> None:
    make_jobs(make_queue("acme"), 2)
    make_job(make_queue("globex"), state="running")

    assert control.erase_tenant("acme")["tenantqueue_job"] == 2
    with pytest.raises(InvalidState):
        control.erase_tenant("globex")


def test_entry_names_who_acts() -> None:
    with control.acting_as("ann", "admin"):
        assert control.current_actor().name == "ann"
        make_queue("acme").pause()

    assert (Change.objects.get().actor, Change.objects.get().source) == ("ann", "admin")


def test_rows_have_the_common_verbs() -> None:
    job, queue = make_job(), make_queue()

    assert job.tune(priority=Priority.ADMIN_HIGH).changed == [job.pk]
    assert job.cancel().changed == [job.pk]
    assert job.state == "ready"  # it is not refreshed
    assert job.retry().changed == [job.pk]
    assert job.run_now().unchanged == [job.pk]
    assert queue.pause().changed == [queue.pk]
    assert queue.resume().changed == [queue.pk]
    assert queue.tune(num_slots=9).changed == [queue.pk]
    assert TenantQueue.objects.get(pk=queue.pk).num_slots == 9


def test_twins_do_what_the_verbs_do() -> None:
    job, queue = make_job(), make_queue("acme", "mail")

    async def act() -> list[Any]:
        with control.acting_as("ann"):
            return [
                await control.acancel(job),
                await job.aretry(),
                await control.apause(queue="mail", tenant="acme"),
                await queue.aresume(),
                await control.atune(queue, num_slots=3),
                await control.amake_queue("acme", "new"),
                await reports.aread_loads(queue),
            ]

    results = async_to_sync(act)()

    assert [result.changed for result in results[:5]] == [[job.pk]] * 2 + [[queue.pk]] * 3
    assert set(Change.objects.values_list("actor", flat=True)) == {"ann"}
    assert list(results[-1]) == [queue.pk]


def test_reports_are_read() -> None:
    queue = make_queue("acme", "mail")
    make_jobs(queue, 3)

    loads = reports.read_loads(["mail"])

    assert (loads[queue.pk].waiting, loads[queue.pk].running) == (3, 0)
    assert reports.read_loads([]) == {}
    assert reports.read_need().startable >= 0
    assert reports.read_report(jobs=0).counts is not None
