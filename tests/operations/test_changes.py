"""Each change leaves one entry: who made it, from where, of what, and each value before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from django_tenantqueue import Serial
from django_tenantqueue.exceptions import InvalidOption
from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import Change, Job, Session, TenantQueue
from django_tenantqueue.operations import (
    changes,
    control,
    maintain,
    monitor_control,
    monitor_retry,
    session_control,
    task_control,
    worker_control,
)
from django_tenantqueue.operations.actor import acting_as, shell_user
from django_tenantqueue.states import State
from django_tenantqueue.status.changes import changes_of
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests import factories
from tests.factories import (
    made_changes,
    make_job,
    make_jobs,
    make_queue,
    make_worker,
)
from tests.operations.monitors import start
from tests.testapp.tasks import fail, noop

pytestmark = pytest.mark.django_db
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def make_session(**columns: Any) -> Session:
    key = gate_key("acme", "s")
    return Session.objects.create(kind="serial", tenant="acme", key="s", gate_key=key, **columns)


def queue_of(**columns: Any) -> int:
    """Make a queue; return its id."""
    return make_queue("acme", **columns).pk


def job_of(**columns: Any) -> int:
    """Make a job of a queue of acme; return its id."""
    return make_job(make_queue("acme"), **columns).pk


Call = Callable[[], object]


def tune_queue() -> tuple[str, int, Call]:
    pk = queue_of(num_slots=3, weight=1)
    return "queue", pk, lambda: control.tune_queue(pk, num_slots=7, weight=1, max_waiting=9)


def rate_queue() -> tuple[str, int, Call]:
    pk = queue_of(max_per_second=2.0)
    return "queue", pk, lambda: control.tune_queue(pk, max_per_second=None, burst=4)


def pause_queue() -> tuple[str, int, Call]:
    pk = queue_of()
    return "queue", pk, lambda: control.pause([pk])


def untick_queue() -> tuple[str, int, Call]:
    pk = queue_of(paused=True)
    return "queue", pk, lambda: control.tune_queue(pk, paused=False)


def resume_queue() -> tuple[str, int, Call]:
    pk = queue_of(paused=True)
    return "queue", pk, lambda: control.resume([pk])


def retire_queue() -> tuple[str, int, Call]:
    pk = queue_of()
    return "queue", pk, lambda: control.retire([pk])


def reopen_queue() -> tuple[str, int, Call]:
    pk = queue_of(retired=True)
    return "queue", pk, lambda: control.reopen([pk])


def tune_session() -> tuple[str, int, Call]:
    pk = make_session().pk
    return "session", pk, lambda: session_control.tune_session(pk, on_failure="halt")


def pause_session() -> tuple[str, int, Call]:
    pk = make_session().pk
    return "session", pk, lambda: session_control.pause_sessions([pk])


def resume_halted_session() -> tuple[str, int, Call]:
    pk = make_session(halted_at=LATER, halted_by=17).pk
    return "session", pk, lambda: session_control.resume_sessions([pk])


def cap_user() -> tuple[str, int, Call]:
    pk = session_control.make_user_limit("acme", "eve", num_slots=1).pk
    Change.objects.all().delete()
    return "user_limit", pk, lambda: session_control.make_user_limit("acme", "eve", num_slots=4)


def pause_task() -> tuple[str, int, Call]:
    pk = factories.cap_task(noop.name, None).pk
    return "task", pk, lambda: factories.pause_task(noop.name)


def resume_task() -> tuple[str, int, Call]:
    pk = factories.pause_task(noop.name).pk
    Change.objects.all().delete()
    return "task", pk, lambda: factories.resume_task(noop.name)


def cap_task() -> tuple[str, int, Call]:
    pk = factories.cap_task(noop.name, None).pk
    return "task", pk, lambda: factories.cap_task(noop.name, 2)


def delete_control() -> tuple[str, int, Call]:
    pk = factories.cap_task(noop.name, 2).pk
    Change.objects.all().delete()
    return "task", pk, lambda: task_control.delete_controls([pk])


def tune_monitor() -> tuple[str, int, Call]:
    pk = start(tenant="acme").pk
    return "monitor", pk, lambda: monitor_control.tune_monitor(pk, parallel=5, interval_seconds=2)


def pause_monitor() -> tuple[str, int, Call]:
    pk = start(tenant="acme").pk
    return "monitor", pk, lambda: monitor_control.pause_monitors([pk])


def cancel_monitor() -> tuple[str, int, Call]:
    pk = start(tenant="acme").pk
    return "monitor", pk, lambda: monitor_control.cancel_monitor(pk)


def retry_details() -> tuple[str, int, Call]:
    pk = start([fail.using(max_attempts=1).call()] * 3, tenant="acme", keep_open=True).pk
    run_pending()
    return "monitor", pk, lambda: monitor_control.retry_failed_details(pk)


def drain_worker() -> tuple[str, int, Call]:
    pk = make_worker().pk
    return "worker", pk, lambda: worker_control.drain([pk])


def stop_worker() -> tuple[str, int, Call]:
    pk = make_worker().pk
    return "worker", pk, lambda: worker_control.stop([pk])


def cancel_waiting_job() -> tuple[str, int, Call]:
    pk = job_of()
    return "job", pk, lambda: control.cancel([pk])


def cancel_running_job() -> tuple[str, int, Call]:
    pk = job_of(state=State.RUNNING)
    return "job", pk, lambda: control.cancel([pk])


def retry_job() -> tuple[str, int, Call]:
    pk = job_of(state=State.ERROR)
    return "job", pk, lambda: control.retry([pk])


def prioritize_job() -> tuple[str, int, Call]:
    pk = job_of()
    return "job", pk, lambda: control.change_priority([pk], 120)


def delay_job() -> tuple[str, int, Call]:
    pk = job_of(state=State.SCHEDULED, run_at=LATER)
    return "job", pk, lambda: control.change_run_at([pk], LATER + timedelta(days=1))


def move_job() -> tuple[str, int, Call]:
    pk = job_of()
    return "job", pk, lambda: control.change_queue([pk], tenant="acme", queue="mail")


PAUSED, RESUMED = ({"paused": False}, {"paused": True}), ({"paused": True}, {"paused": False})
AT, NEXT = LATER.isoformat()[:19] + "Z", "2100-01-02T00:00:00Z"
CASES: list[tuple[Callable[[], tuple[str, int, Call]], str, dict[str, Any], dict[str, Any]]] = [
    (tune_queue, "tune", {"num_slots": 3, "max_waiting": None}, {"num_slots": 7, "max_waiting": 9}),
    (
        rate_queue,
        "tune",
        {"max_per_second": 2.0, "burst": None},
        {"max_per_second": None, "burst": 4},
    ),
    (pause_queue, "pause", *PAUSED),
    (untick_queue, "resume", *RESUMED),
    (resume_queue, "resume", *RESUMED),
    (retire_queue, "retire", {"retired": False}, {"retired": True}),
    (reopen_queue, "reopen", {"retired": True}, {"retired": False}),
    (tune_session, "tune", {"on_failure": ""}, {"on_failure": "halt"}),
    (pause_session, "pause", *PAUSED),
    (
        resume_halted_session,
        "resume",
        {"halted_at": AT, "halted_by": 17},
        {"halted_at": None, "halted_by": None},
    ),
    (cap_user, "tune", {"num_slots": 1}, {"num_slots": 4}),
    (pause_task, "pause", *PAUSED),
    (resume_task, "resume", *RESUMED),
    (cap_task, "tune", {"num_slots": None}, {"num_slots": 2}),
    (delete_control, "delete", {"num_slots": 2, "paused": False}, {}),
    (
        tune_monitor,
        "tune",
        {"parallel": 3, "interval_seconds": 0.0},
        {"parallel": 5, "interval_seconds": 2.0},
    ),
    (pause_monitor, "pause", *PAUSED),
    (retry_details, "retry", {}, {"retried_details": 3}),
    (drain_worker, "drain", {"draining": False}, {"draining": True}),
    (stop_worker, "stop", {"stopping": False}, {"stopping": True}),
    (cancel_waiting_job, "cancel", {"state": "ready"}, {"cancelled": 1}),
    (cancel_running_job, "cancel", {"state": "running"}, {"asked_to_stop": 1}),
    (retry_job, "retry", {"state": "error"}, {"state": "ready"}),
    (prioritize_job, "set_priority", {"priority": 240}, {"priority": 120}),
    (delay_job, "set_run_at", {"run_at": AT}, {"run_at": NEXT}),
    (move_job, "move", {"queue": "acme / default"}, {"queue": "acme / mail"}),
]
IDS = [case[0].__name__ for case in CASES]


@pytest.mark.parametrize(("prepare", "action", "before", "after"), CASES, ids=IDS)
def test_change_leaves_one_entry_with_what_it_changed(
    prepare: Callable[[], tuple[str, int, Call]],
    action: str,
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    kind, pk, call = prepare()

    with acting_as("ada", "api"):
        call()

    run_commit_hooks("default")
    change = Change.objects.get()
    assert (change.action, change.before, change.after) == (action, before, after)
    assert (change.object_kind, change.object_ids, change.object_count) == (kind, [pk], 1)
    assert (change.actor, change.source) == ("ada", "api")
    assert change.object_label
    assert change.tenant == ("" if kind in ("task", "worker") else "acme")
    assert abs(change.made_at - timezone.now()) < timedelta(minutes=5)


@pytest.mark.parametrize("prepare", [case[0] for case in CASES], ids=IDS)
def test_second_call_leaves_none_when_it_changes_nothing(
    prepare: Callable[[], tuple[str, int, Call]],
) -> None:
    _, _, call = prepare()
    call()
    run_commit_hooks("default")

    call()

    run_commit_hooks("default")
    assert Change.objects.count() == 1


@pytest.mark.parametrize("prepare", [case[0] for case in CASES], ids=IDS)
def test_no_entry_is_left_when_the_change_is_rolled_back(
    prepare: Callable[[], tuple[str, int, Call]],
) -> None:
    _, _, call = prepare()

    with transaction.atomic():
        call()
        assert Change.objects.count() == 1
        transaction.set_rollback(True)

    assert not Change.objects.exists()


@pytest.mark.parametrize(
    "prepare", [pause_queue, tune_session, prioritize_job, cancel_waiting_job, drain_worker]
)
def test_nothing_is_changed_when_the_entry_cannot_be_written(
    prepare: Callable[[], tuple[str, int, Call]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, pk, call = prepare()
    model = changes.Change.Kind(kind)
    rows = {"queue": TenantQueue, "session": Session, "job": Job}.get(model)
    stored = rows.objects.values().get(pk=pk) if rows else None

    def broken() -> None:
        raise RuntimeError("no entry")

    monkeypatch.setattr(changes, "current_actor", broken)
    with pytest.raises(RuntimeError, match="no entry"):
        call()

    if rows:
        assert rows.objects.values().get(pk=pk) == stored


def test_time_before_and_after_is_kept_when_a_job_runs_now() -> None:
    job = job_of(state=State.SCHEDULED, run_at=LATER)

    control.run_now([job])

    ((action, before, after),) = made_changes()
    assert (action, before) == ("run_now", {"run_at": AT})
    assert parse_datetime(after["run_at"]) < timezone.now()


def test_cancelled_monitor_leaves_one_entry_whatever_its_details() -> None:
    monitor = start(tenant="acme")

    monitor_control.cancel_monitor(monitor.pk)
    monitor_control.cancel_monitor(monitor.pk)

    ((action, before, after),) = made_changes()
    assert (action, before) == ("cancel", {"cancelled_at": None})
    assert after["cancelled_at"]


def test_bulk_leaves_one_entry_with_the_count_and_up_to_100_ids() -> None:
    waiting = make_jobs(make_queue("acme"), 130)
    first = make_jobs(make_queue("zeta"), 3, priority=100)

    control.change_priority([*waiting, *first], 120)

    change = Change.objects.get()
    assert change.object_count == 133
    assert change.object_ids == sorted([*waiting, *first])[:100]
    assert change.before == {"priority": [240, 100]}
    assert change.object_label == noop.name


def test_bulk_of_100_jobs_leaves_one_entry_when_some_end_and_some_are_asked() -> None:
    queue = make_queue("acme")
    waiting, running = make_jobs(queue, 60), make_jobs(queue, 40, state=State.RUNNING)

    control.cancel([*waiting, *running])

    change = Change.objects.get()
    assert change.after == {"cancelled": 60, "asked_to_stop": 40}
    assert change.before == {"state": ["ready", "running"]}
    assert (change.object_count, change.object_ids) == (100, sorted([*waiting, *running]))
    assert (change.object_label, change.tenant) == (noop.name, "acme")


def test_bulk_leaves_out_what_has_not_changed() -> None:
    queue = make_queue("acme")
    same, other = make_job(queue, priority=120).pk, make_job(queue).pk

    control.change_priority([same, other], 120)

    assert Change.objects.get().object_ids == [other]


def test_several_queues_are_named_in_one_entry() -> None:
    queues = [make_queue("acme", f"q{number}") for number in range(6)]

    assert len(control.pause(queues)) == 6

    change = Change.objects.get()
    assert change.object_label == "acme / q0, acme / q1, acme / q2, acme / q3, acme / q4, …"
    assert (change.object_count, change.tenant) == (6, "acme")


def test_retried_details_are_counted_in_one_entry_whatever_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(monitor_retry, "BATCH", 2)
    monitor = start([fail.using(max_attempts=1).call()] * 7, keep_open=True)
    run_pending()

    assert monitor_control.retry_failed_details(monitor.pk) == 7

    assert made_changes() == [("retry", {}, {"retried_details": 7})]


def test_changed_lanes_are_one_entry_of_the_user_that_runs_the_command() -> None:
    make_jobs(make_queue(), 5)

    with override_settings(TENANTQUEUE={"PRIORITY_SCOPE": "tenant"}):
        call_command("tenantqueue", "apply-priority-scope")

    change = Change.objects.get()
    assert (change.actor, change.source) == (shell_user(), "command")
    assert (change.action, change.object_count) == ("relane", 5)
    assert change.after == {"priority_scope": "tenant"}


def test_worker_is_named_when_a_failure_halts_a_session() -> None:
    job = fail.using(session=Serial("s", on_failure="halt"), tenant="acme", max_attempts=1).delay()
    noop.using(session="s", tenant="acme").delay()

    run_pending()

    change = Change.objects.get()
    session = Session.objects.get()
    assert (change.actor, change.source, change.action) == ("worker", "worker", "halt")
    assert (change.object_kind, change.object_ids) == ("session", [session.pk])
    assert (change.object_label, change.tenant) == (str(session), "acme")
    assert change.after["halted_by"] == job.pk
    assert changes_of("default", session) == [change]


def test_nothing_is_left_by_what_workers_do_all_day() -> None:
    for _ in range(3):
        noop.using(session="s", limit_user="u", tenant="acme").delay()
    fail.using(max_attempts=1).delay()

    run_pending()

    assert not Change.objects.exists()


def test_code_is_the_source_when_no_one_is_named() -> None:
    control.pause([queue_of()])

    change = Change.objects.get()
    assert (change.actor, change.source) == ("", "code")


def test_inner_name_counts_until_its_block_ends() -> None:
    queue = queue_of()

    with acting_as("ada", "admin"):
        with acting_as("grace", "command"):
            control.pause([queue])
        control.resume([queue])

    assert list(Change.objects.order_by("pk").values_list("actor", "source")) == [
        ("grace", "command"),
        ("ada", "admin"),
    ]


def test_change_is_made_whatever_the_names_are() -> None:
    queues = [make_queue("\U0001f40d" * 200, f"{number}" * 100) for number in range(4)]

    with acting_as("a\0da" + "\U0001f40d" * 5000):
        assert len(control.pause(queues)) == 4

    change = Change.objects.get()
    assert change.actor.startswith("a\\x00da")
    assert len(change.object_label) == 600


def test_unknown_source_is_refused() -> None:
    with pytest.raises(InvalidOption, match="source='webhook': it must be one of"):
        acting_as("ada", "webhook").__enter__()


def test_name_is_empty_when_the_system_does_not_know_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", unknown)

    assert shell_user() == ""


def test_changes_of_a_control_are_found_when_it_was_made_again() -> None:
    task_control.delete_controls([factories.pause_task(noop.name).pk])
    again = factories.cap_task(noop.name, 3)
    factories.pause_task(fail.name)

    found = changes_of("default", again)

    assert [change.action for change in found] == ["tune", "delete", "pause"]


def test_changes_of_a_queue_include_those_of_several_and_no_other_kind() -> None:
    queue, other = make_queue("acme"), make_queue("zeta")
    control.pause([queue.pk, other.pk])
    control.tune_queue(other.pk, weight=2)
    make_worker(pk=queue.pk)
    worker_control.drain([queue.pk])

    assert [change.action for change in changes_of("default", queue)] == ["pause"]
    newest, oldest = changes_of("default", other)
    assert (newest.action, oldest.action) == ("tune", "pause")
    assert changes_of("default", other, before=newest.pk) == [oldest]
    assert changes_of("default", other, most=1) == [newest]


def make_old(days: int) -> Change:
    made_at = timezone.now() - timedelta(days=days)
    return Change.objects.create(
        made_at=made_at, source="code", action="tune", object_kind="queue", object_ids=[1]
    )


def test_old_entries_are_pruned_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintain, "BATCH", 2)
    for _ in range(3):
        make_old(401)
    kept = make_old(399)

    assert [maintain.prune_changes("default") for _ in range(3)] == [2, 1, 0]

    assert list(Change.objects.all()) == [kept]


def test_entries_are_kept_as_long_as_the_setting_says() -> None:
    make_old(3000)

    with override_settings(TENANTQUEUE={"CHANGES_KEEP_DAYS": None}):
        assert maintain.prune_changes("default") == 0
    with override_settings(TENANTQUEUE={"CHANGES_KEEP_DAYS": 3001}):
        assert maintain.prune_changes("default") == 0
    with override_settings(TENANTQUEUE={"CHANGES_KEEP_DAYS": 2999}):
        assert maintain.prune_changes("default") == 1
