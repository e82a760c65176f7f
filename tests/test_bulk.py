"""Bulk actions: exactly the jobs that match, in batches, with one entry whose count is true."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue import bulk
from django_tenantqueue.exceptions import InvalidArgument, InvalidOption
from django_tenantqueue.execution import current_job as running_jobs
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.operations.monitor_control import cancel_monitor
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_pending
from tests.factories import make_jobs, make_queue, states_of
from tests.operations.monitors import start as start_monitor
from tests.testapp.tasks import noop

pytestmark = pytest.mark.django_db
BATCH = 10


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH", BATCH)


@pytest.fixture
def after_batch(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[int], None]]:
    """Return a list of functions that are called after each batch, with its number."""
    called: list[Callable[[int], None]] = []
    act_on = bulk.act_on
    numbers = iter(range(1, 1000))

    def act_and_call(*args: Any) -> Any:
        tally = act_on(*args)
        number = next(numbers)
        for function in called:
            function(number)
        return tally

    monkeypatch.setattr(bulk, "act_on", act_and_call)
    return called


def do(action: str, values: dict[str, Any] | None = None, **filters: str) -> Job:
    """Start a bulk action, run its job alone, and return it as it ended."""
    bulk.start(action, filters, values)
    return run_bulk()


def sees_acme(user: User) -> list[str]:
    assert user.username == "anna"
    return ["acme"]


def run_bulk() -> Job:
    (job,) = run_pending()
    return job


def paused_queue(tenant: str = "acme", name: str = "default") -> TenantQueue:
    return make_queue(tenant, name, paused=True)


def test_retry_takes_all_batches_and_leaves_one_entry() -> None:
    queue = paused_queue()
    failed = make_jobs(queue, 25, state=State.ERROR)
    cancelled = make_jobs(queue, 8, state=State.CANCELLED)
    succeeded = make_jobs(queue, 3, state=State.SUCCESS)

    with acting_as("anna", Change.Source.ADMIN):
        job = do("retry")

    assert (job.state, job.result) == (State.SUCCESS, {"changed": 33, "left": {}})
    assert (job.progress_done, job.progress_total) == (33, 33)
    assert job.progress_message == "33 jobs changed."
    assert set(states_of(failed + cancelled).values()) == {State.READY}
    assert set(states_of(succeeded).values()) == {State.SUCCESS}
    change = Change.objects.get()
    assert (change.actor, change.source, change.action) == ("anna", "admin", "retry")
    assert change.object_count == 33
    assert change.object_label == f"job #{job.pk}: all"
    assert change.after == {}
    assert set(change.object_ids) == {*failed, *cancelled}


def test_action_takes_blanks_around_a_name_as_they_are() -> None:
    own, other = (make_jobs(paused_queue(name=name), 1) for name in (" mail ", "mail"))

    do("cancel", tenant="acme", queue=" mail ")

    assert set(states_of(own).values()) == {State.CANCELLED}
    assert set(states_of(other).values()) == {State.READY}
    with pytest.raises(InvalidArgument, match="empty"):
        do("cancel", q=" ")


def test_cancel_ends_waiting_jobs_and_asks_running_ones() -> None:
    queue = paused_queue()
    waiting = make_jobs(queue, 15)
    running = make_jobs(queue, 2, state=State.RUNNING)
    finished = make_jobs(queue, 2, state=State.SUCCESS)

    job = do("cancel", tenant="acme")

    assert job.result == {"changed": 17, "left": {}}
    assert set(states_of(waiting).values()) == {State.CANCELLED}
    assert Job.objects.filter(pk__in=running, cancel_requested_at__isnull=False).count() == 2
    assert set(states_of(finished).values()) == {State.SUCCESS}
    assert Change.objects.get().object_count == 17


def test_run_now_makes_scheduled_jobs_ready() -> None:
    later = timezone.now() + timedelta(hours=1)
    queue = paused_queue()
    scheduled = make_jobs(queue, 15, state=State.SCHEDULED, run_at=later)
    held = make_jobs(queue, 2, state=State.HELD)

    job = do("run_now")

    assert job.result == {"changed": 15, "left": {"waits_for_no_time": 2}}
    assert job.progress_message.startswith(
        "15 jobs changed. 2 skipped: they are not waiting for a scheduled time"
    )
    assert set(states_of(scheduled).values()) == {State.READY}
    assert set(states_of(held).values()) == {State.HELD}
    assert Change.objects.get().after == {"waits_for_no_time": 2}


def test_priority_changes_for_waiting_jobs() -> None:
    queue = paused_queue()
    waiting = make_jobs(queue, 15)
    running = make_jobs(queue, 2, state=State.RUNNING)

    job = do("change_priority", {"priority": 120})

    assert job.result == {"changed": 15, "left": {}}
    assert Job.objects.filter(pk__in=waiting, priority=120, lane=120).count() == 15
    assert Job.objects.filter(pk__in=running, priority=240).count() == 2
    assert Change.objects.get().after == {"priority": 120}


def test_jobs_move_to_the_queue_of_their_own_tenant() -> None:
    acme, zeta = paused_queue("acme"), paused_queue("zeta")
    mail = paused_queue("acme", "mail")
    of_acme, of_zeta = make_jobs(acme, 15), make_jobs(zeta, 2)

    job = do("move", {"queue": "mail"})

    assert job.result == {"changed": 15, "left": {"no_such_queue": 2}}
    assert Job.objects.filter(pk__in=of_acme, queue=mail).count() == 15
    assert Job.objects.filter(pk__in=of_zeta, queue=zeta).count() == 2
    assert not TenantQueue.objects.filter(tenant="zeta", name="mail").exists()


def test_jobs_move_to_another_tenant_unless_a_session_keeps_them() -> None:
    acme, mail = paused_queue("acme"), paused_queue("zeta", "mail")
    free = make_jobs(acme, 12)
    make_jobs(acme, 1, session_key="acme/7")

    job = do("move", {"queue": "mail", "tenant": "zeta"}, tenant="acme")

    assert job.result == {"changed": 12, "left": {"bound_to_tenant": 1}}
    assert set(Job.objects.filter(queue=mail).values_list("pk", flat=True)) == set(free)


@pytest.mark.parametrize(("tenant", "goal"), [("", "nobodys"), (None, "own")])
def test_jobs_move_to_no_tenant_where_the_tenant_is_empty(tenant: str | None, goal: str) -> None:
    queues = {"nobodys": paused_queue("", "mail"), "own": paused_queue("acme", "mail")}
    ids = make_jobs(paused_queue("acme"), 3)

    do("move", {"queue": "mail", "tenant": tenant})

    assert set(Job.objects.filter(queue=queues[goal]).values_list("pk", flat=True)) == set(ids)


def test_delete_takes_finished_jobs_and_leaves_those_of_monitors() -> None:
    queue = paused_queue()
    old = make_jobs(queue, 13, state=State.SUCCESS)
    waiting = make_jobs(queue, 2)
    monitor = start_monitor(on_end=noop.call())
    cancel_monitor(monitor.pk)
    Change.objects.all().delete()

    job = do("delete")

    assert job.result == {"changed": 13, "left": {"counted_by_monitor": 11}}
    assert not Job.objects.filter(pk__in=old).exists()
    assert len(states_of(waiting)) == 2
    assert states_of([monitor.anchor_id])
    change = Change.objects.get()
    assert (change.action, change.object_count) == ("delete", 13)


def test_jobs_of_a_cancelled_monitor_are_not_retried() -> None:
    monitor = start_monitor(on_end=noop.call())
    cancel_monitor(monitor.pk)

    job = do("retry")

    assert job.result == {"changed": 0, "left": {"monitor_cancelled": 11}}
    assert states_of([monitor.anchor_id]) == {monitor.anchor_id: State.CANCELLED}


def test_a_stopped_action_is_not_retried_by_another_one() -> None:
    ids = make_jobs(paused_queue(), 1, state=State.SUCCESS)
    stopped = bulk.start("delete", {"tenant": "acme"})
    control.cancel([stopped.pk], recorded=False)

    job = do("retry")

    assert job.result == {"changed": 0, "left": {"bulk_action": 1}}
    assert states_of([stopped.pk, *ids]) == {stopped.pk: State.CANCELLED, ids[0]: State.SUCCESS}


def test_an_action_that_is_cancelled_in_its_last_batch_has_succeeded(
    after_batch: list[Callable[[int], None]],
) -> None:
    make_jobs(paused_queue(), 3, state=State.ERROR)

    def ask_to_stop(number: int) -> None:
        running_jobs.current_job().cancel_requested = True

    after_batch.append(ask_to_stop)

    assert do("retry").result == {"changed": 3, "left": {}}
    assert Change.objects.get().after == {}


def test_only_jobs_that_match_every_filter_change() -> None:
    acme, mail = paused_queue("acme"), paused_queue("acme", "mail")
    zeta = paused_queue("zeta")
    wanted = make_jobs(acme, 12, state=State.ERROR, task="reports.make")
    others = [
        *make_jobs(acme, 2, state=State.ERROR, task="reports.made"),
        *make_jobs(acme, 2, state=State.CANCELLED, task="reports.make"),
        *make_jobs(mail, 2, state=State.ERROR, task="reports.make"),
        *make_jobs(zeta, 2, state=State.ERROR, task="reports.make"),
    ]
    before = states_of(others)

    job = do("retry", state="error", tenant="acme", queue="default", task="reports.make")

    assert job.result == {"changed": 12, "left": {}}
    assert set(states_of(wanted).values()) == {State.READY}
    assert states_of(others) == before
    change = Change.objects.get()
    assert change.tenant == "acme"
    said = "state=error, tenant=acme, queue=default, task=reports.make"
    assert change.object_label == f"job #{job.pk}: {said}"


def test_a_search_for_a_number_is_one_job() -> None:
    queue = paused_queue()
    first, second = make_jobs(queue, 2, state=State.ERROR)

    assert do("retry", q=f"#{first}").result == {"changed": 1, "left": {}}
    assert states_of([first, second]) == {first: State.READY, second: State.ERROR}


def test_jobs_that_are_created_after_the_start_do_not_match() -> None:
    queue = paused_queue()
    before = make_jobs(queue, 12, state=State.ERROR)
    bulk.start("retry", {"state": "error"})
    after = make_jobs(queue, 12, state=State.ERROR)

    job = run_bulk()

    assert job.result == {"changed": 12, "left": {}}
    assert set(states_of(before).values()) == {State.READY}
    assert set(states_of(after).values()) == {State.ERROR}


def test_jobs_that_change_between_reading_and_acting_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = paused_queue()
    ids = make_jobs(queue, 12, state=State.ERROR)
    act_on = bulk.act_on

    def retry_one_first(*args: Any) -> Any:
        control.retry(ids[-1:], recorded=False)
        return act_on(*args)

    monkeypatch.setattr(bulk, "act_on", retry_one_first)

    assert do("retry").result == {"changed": 11, "left": {"changed_meanwhile": 1}}


def test_jobs_that_are_moved_between_reading_and_acting_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = make_jobs(paused_queue(), 3)
    paused_queue("acme", "mail")
    act_on = bulk.act_on

    def move_one_first(*args: Any) -> Any:
        control.change_queue(ids[:1], tenant="acme", queue="mail", recorded=False)
        return act_on(*args)

    monkeypatch.setattr(bulk, "act_on", move_one_first)

    job = do("cancel", tenant="acme", queue="default")

    assert job.result == {"changed": 2, "left": {"changed_meanwhile": 1}}
    assert states_of(ids[:1]) == {ids[0]: State.READY}


def test_a_batch_is_not_done_twice_when_the_next_run_takes_over(
    after_batch: list[Callable[[int], None]],
) -> None:
    queue = paused_queue()
    ids = make_jobs(queue, 25, state=State.ERROR)
    newest = ids[-BATCH:]

    def fail_again_and_crash(number: int) -> None:
        if number == 1:
            end_again(newest)
            raise ZeroDivisionError

    after_batch.append(fail_again_and_crash)
    bulk.start("retry", {"state": "error"})
    run_pending()
    assert Change.objects.get().object_count == BATCH

    (job,) = run_pending(scheduled=True)

    assert (job.state, job.attempt) == (State.SUCCESS, 2)
    assert job.result == {"changed": 25, "left": {}}
    assert (job.progress_done, job.progress_total) == (25, 25)
    assert set(states_of(newest).values()) == {State.ERROR}  # they have failed again since
    change = Change.objects.get()
    assert (change.object_count, change.after) == (25, {})


def end_again(ids: list[int]) -> None:
    """Let jobs end in error, as if they had run."""
    control.cancel(ids, recorded=False)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenantqueue_job_history SET state = 'error' WHERE id = ANY (%s)", [ids]
        )


def test_a_cancelled_action_says_how_far_it_was_and_a_retry_goes_on(
    after_batch: list[Callable[[int], None]],
) -> None:
    ids = make_jobs(paused_queue(), 25, state=State.ERROR)

    def ask_to_stop(number: int) -> None:
        if number == 1:
            running_jobs.current_job().cancel_requested = True

    after_batch.append(ask_to_stop)

    job = do("retry", state="error")

    assert job.state == State.CANCELLED
    said = "Stopped. 10 jobs changed. A retry continues from here."
    assert job.last_error["message"] == said
    assert Change.objects.get().object_count == BATCH
    assert list(states_of(ids).values()).count(State.READY) == BATCH

    control.retry([job.pk], recorded=False)
    assert run_bulk().result == {"changed": 25, "left": {}}
    assert Change.objects.get().object_count == 25


def test_a_run_whose_job_was_taken_over_changes_nothing_more(
    after_batch: list[Callable[[int], None]],
) -> None:
    ids = make_jobs(paused_queue(), 25, state=State.ERROR)

    def lose_the_claim(number: int) -> None:
        Job.objects.unfinished().filter(queue__name="admin").update(claim_seq=99)

    after_batch.append(lose_the_claim)

    bulk.start("retry", {"state": "error"})
    run_pending()

    assert list(states_of(ids).values()).count(State.READY) == BATCH
    assert Change.objects.get().object_count == BATCH


def test_action_is_done_at_once_in_eager_mode(settings: Any) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "EAGER": True}
    ids = make_jobs(paused_queue(), 12, state=State.ERROR)

    job = bulk.start("retry", {"state": "error"})

    assert (job.state, job.result) == (State.SUCCESS, {"changed": 12, "left": {}})
    assert set(states_of(ids).values()) == {State.READY}
    assert Change.objects.get().object_count == 12


def test_nothing_is_recorded_when_nothing_matches() -> None:
    make_queue("acme")

    assert do("retry", tenant="acme").result == {"changed": 0, "left": {}}
    assert not Change.objects.exists()


def test_the_action_leaves_its_own_job_alone() -> None:
    assert do("cancel").result == {"changed": 0, "left": {}}


def test_the_queue_has_one_slot_until_an_operator_says_otherwise(settings: Any) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "ADMIN_QUEUE": "bulk"}

    job = bulk.start("cancel", {})

    queue = TenantQueue.objects.get(pk=job.queue_id)
    assert (queue.tenant, queue.name, queue.num_slots) == ("", "bulk", 1)
    control.tune_queue(queue.pk, num_slots=3)
    bulk.start("cancel", {})
    queue.refresh_from_db()
    assert queue.num_slots == 3


def test_the_job_of_a_user_who_is_gone_ends_in_error() -> None:
    user = User.objects.create_user("anna")
    make_jobs(paused_queue(), 1, state=State.ERROR)
    job = bulk.start("retry", {}, user=user)
    assert job.created_by == str(user.pk)
    user.delete()

    job = run_bulk()

    assert job.state == State.ERROR
    assert "does not exist any more" in job.last_error["message"]
    assert not Change.objects.exists()


def test_only_what_the_user_may_see_is_changed() -> None:
    user = User.objects.create_user("anna")
    seen, unseen = paused_queue("acme"), paused_queue("zeta")
    mine = make_jobs(seen, 12, state=State.ERROR)
    theirs = make_jobs(unseen, 12, state=State.ERROR)
    with override_settings(TENANTQUEUE={"VISIBLE_TENANTS": "tests.test_bulk.sees_acme"}):
        bulk.start("retry", {"state": "error"}, user=user)

        job = run_bulk()

    assert job.queue.tenant == "acme"
    assert job.result == {"changed": 12, "left": {}}
    assert set(states_of(mine).values()) == {State.READY}
    assert set(states_of(theirs).values()) == {State.ERROR}


@pytest.mark.parametrize(
    ("action", "filters", "values", "error", "text"),
    [
        ("explode", {}, {}, InvalidOption, "action='explode': it must be one of"),
        ("retry", {"colour": "red"}, {}, InvalidArgument, "There is no filter 'colour'"),
        ("retry", {"state": "lost"}, {}, InvalidArgument, "Unknown state 'lost'"),
        ("retry", {"tenant": "nobody"}, {}, InvalidArgument, "Tenant 'nobody' has no queue"),
        ("retry", {"tenant": "a\x00b"}, {}, InvalidArgument, "There is no job with"),
        ("retry", {"task": "a\x00b"}, {}, InvalidArgument, "There is no job with"),
        ("retry", {"queue_id": "1 OR 1=1"}, {}, InvalidArgument, "There is no queue 1 OR 1=1"),
        ("retry", {"queue_id": "9" * 5000}, {}, InvalidArgument, "There is no queue 999"),
        ("retry", {}, {"priority": 1}, InvalidOption, "takes no values"),
        ("change_priority", {}, {}, InvalidOption, "needs the value 'priority'"),
        ("change_priority", {}, {"priority": "1"}, InvalidOption, "priority"),
        ("move", {}, {"tenant": "x"}, InvalidOption, "needs the value 'queue'"),
        ("move", {}, {"queue": ""}, InvalidOption, "queue"),
    ],
)
def test_nothing_is_enqueued_when_something_is_wrong(
    action: str, filters: dict[str, str], values: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        bulk.start(action, filters, values)

    assert not Job.objects.exists()


def test_a_filter_that_the_worker_does_not_know_ends_the_job() -> None:
    ids = make_jobs(paused_queue(), 3, state=State.ERROR)
    filters = {"colour": "red"}
    bulk.TASKS["retry"].enqueue(
        {"tenant": ""}, filters=filters, values={}, user_id=None, actor=["anna", "code"]
    )

    job = run_bulk()

    assert (job.state, job.attempt) == (State.ERROR, 1)
    assert "There is no filter 'colour'" in job.last_error["message"]
    assert set(states_of(ids).values()) == {State.ERROR}


def test_hostile_filter_values_select_nothing_else() -> None:
    ids = make_jobs(paused_queue(), 3, state=State.ERROR)

    job = do("retry", task="%' OR '1'='1")

    assert job.result == {"changed": 0, "left": {}}
    assert set(states_of(ids).values()) == {State.ERROR}
