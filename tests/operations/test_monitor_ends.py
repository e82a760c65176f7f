"""How monitors end: callbacks, failures, retries and cancellation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from django_tenantqueue import Unique
from django_tenantqueue.exceptions import (
    InvalidOption,
    InvalidState,
    MonitorEnded,
)
from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    Job,
)
from django_tenantqueue.operations import control
from django_tenantqueue.operations.monitor_control import (
    Feeder,
    cancel_monitor,
    find_cancelled,
    retry_failed_details,
    tune_monitor,
)
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.operations.monitors import anchor_of, find_open, run_some, start, states
from tests.testapp.tasks import echo, fail, noop

pytestmark = pytest.mark.django_db


def test_callback_runs_once_after_the_last_detail() -> None:
    monitor = start(on_end=echo.call("all done"))

    ran = run_pending()

    assert [job.result for job in ran][-1] == "all done"
    assert len(ran) == 11
    assert ran[-1].pk == monitor.anchor_id
    assert monitor.progress().status == "ended"
    assert Feeder().step("default") == 0
    assert run_pending() == []


def test_monitor_without_details_ends_at_once() -> None:
    monitor = start([], on_end=echo.call("nothing to do"))

    assert [job.result for job in run_pending()] == ["nothing to do"]
    assert monitor.progress().percent is None


def test_end_is_found_by_the_duty_when_its_release_was_lost() -> None:
    monitor = start(on_end=echo.call("done"))
    with connection.cursor() as cursor:  # the details end, nobody releases
        cursor.execute(
            "WITH gone AS (DELETE FROM tenantqueue_job_hot WHERE id <> %s RETURNING *) "
            "INSERT INTO tenantqueue_job_history (id, queue_id, lane, priority, final, state, "
            "finished_at, task, source_type, source_method, monitor_id) SELECT id, queue_id, lane, "
            "priority, true, 'success', now(), task, source_type, source_method, monitor_id "
            "FROM gone",
            [monitor.anchor_id],
        )

    assert Feeder().step("default") == 1

    assert [job.result for job in run_pending()] == ["done"]


def test_failed_callback_can_be_retried() -> None:
    monitor = start(on_end=fail.using(max_attempts=1).call())
    run_pending()
    assert anchor_of(monitor).state == "error"
    assert monitor.progress().failed == 0

    assert control.retry([monitor.anchor_id]) == [monitor.anchor_id]

    assert anchor_of(monitor).held_by == "details"
    run_commit_hooks("default")
    assert anchor_of(monitor).state == "ready"


def test_retried_callback_waits_for_retried_details() -> None:
    details = [fail.using(max_attempts=1).call(), noop.call()]
    monitor = start(details, on_end=fail.using(max_attempts=1).call())
    run_pending()
    retry_failed_details(monitor.pk)

    control.retry([monitor.anchor_id])

    run_commit_hooks("default")
    assert (anchor_of(monitor).state, anchor_of(monitor).held_by) == ("held", "details")
    assert run_pending()[-1].pk == monitor.anchor_id


@pytest.mark.parametrize("session", [None, "s"])
def test_callback_cannot_be_cancelled_before_the_last_detail(session: str | None) -> None:
    monitor = start(session=session, tenant="acme")
    waiting = start(session=session, tenant="acme")

    for each in (monitor, waiting):
        assert control.cancel([each.anchor_id]) == ([], [])

    assert {anchor_of(each).state for each in (monitor, waiting)} == {"held"}
    cancel_monitor(monitor.pk)
    Feeder().step("default")
    assert anchor_of(monitor).state == "cancelled"


def test_monitor_without_callback_ends_where_its_details_run() -> None:
    monitor = start([noop.using(queue="devices").call()], tenant="acme")

    assert anchor_of(monitor).queue.name == "devices"


@pytest.mark.parametrize("mode", ["until_executing", "until_executed", "while_executing_reject"])
def test_detail_that_would_be_dropped_as_a_duplicate_is_refused(mode: Any) -> None:
    with pytest.raises(InvalidOption, match=rf"unique='{mode}': a monitor keeps each"):
        start([noop.using(unique=Unique(mode)).call()])


def test_details_with_one_key_run_one_after_another() -> None:
    alone = noop.using(unique=Unique("while_executing", key="device"))
    monitor = start([alone.call(), alone.call(), noop.call()])

    assert states(monitor) == ["ready", "held", "ready"]
    assert monitor.details().order_by("pk")[1].held_by == "exclusive"
    run_pending()
    assert states(monitor) == ["success"] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unique": Unique("until_executed")}, "the callback of a monitor runs once"),
        ({"run_at": timedelta(hours=1)}, "the callback of a monitor runs once"),
        ({"limit_user": "7"}, "the callback of a monitor runs once"),
        ({"expires_at": timedelta(hours=1)}, "count from the start of the monitor"),
        ({"tenant": "other"}, "belong to its tenant"),
    ],
)
def test_callback_is_refused_when_it_says_what_it_cannot(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        start(tenant="acme", on_end=noop.using(**options).call())


def test_no_details_are_taken_when_the_callback_waits_for_its_task() -> None:
    monitor = start(on_end=echo.call("done"))
    run_some(10)
    Feeder().step("default")
    Job.objects.filter(pk=monitor.anchor_id).update(state="held", held_by="task")

    with pytest.raises(MonitorEnded):
        monitor.add([noop.call()])


def test_details_can_be_added_while_it_runs() -> None:
    monitor = start()
    run_some(5)

    assert monitor.add([echo.call("late")]) == 1

    assert monitor.progress().total == 11
    assert "late" in [job.result for job in run_pending()]
    with pytest.raises(MonitorEnded, match="has ended and takes no more details"):
        monitor.add([noop.call()])


def test_open_monitor_ends_when_it_is_closed() -> None:
    monitor = start([], keep_open=True, on_end=echo.call("closed"))
    assert run_pending() == []
    assert monitor.progress().status == "open"
    monitor.add([noop.call()])
    assert len(run_pending()) == 1

    monitor.close()

    assert [job.result for job in run_pending()] == ["closed"]


def test_stop_after_failures_says_why_and_goes_on_when_they_are_retried() -> None:
    details = [fail.using(max_attempts=1).call() for _ in range(6)]
    monitor = start(details, parallel=1, stop_after_failures=3)

    assert len(run_pending()) == 3

    progress = monitor.progress()
    assert (progress.status, progress.failed, progress.left) == ("stopped", 3, 3)
    assert progress.reason == (
        "3 details have failed, and it stops after 3: retry them, or raise that number"
    )
    assert states(monitor).count("ready") == 0

    tune_monitor(monitor.pk, stop_after_failures=4)
    assert len(run_pending()) == 1
    assert retry_failed_details(monitor.pk) == 4
    assert len(run_pending()) == 4
    tune_monitor(monitor.pk, stop_after_failures=None)
    assert len(run_pending()) == 3  # the two that are left, and the end
    assert monitor.progress().failed == 6


def test_failed_details_run_again_when_it_has_ended() -> None:
    monitor = start([fail.using(max_attempts=1).call(), noop.call()], on_end=echo.call("done"))
    assert len(run_pending()) == 3

    assert retry_failed_details(monitor.pk) == 1

    assert monitor.progress().status == "running"
    assert [job.task for job in run_pending()] == ["tests.testapp.tasks.fail"]
    assert monitor.progress().status == "ended"
    assert retry_failed_details(monitor.pk) == 1


def test_retry_goes_in_steps(monkeypatch) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.monitor_retry.BATCH", 2)
    monitor = start([fail.using(max_attempts=1).call() for _ in range(7)])
    run_pending()

    assert retry_failed_details(monitor.pk) == 7

    assert states(monitor) == ["ready"] * 3 + ["held"] * 4


def test_cancelled_monitor_ends_without_its_callback(monkeypatch) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.monitor_control.BATCH", 2)
    monitor = start(on_end=echo.call("never"))
    run_some(2)

    assert cancel_monitor(monitor.pk) == 8
    assert cancel_monitor(monitor.pk) == 0

    assert states(monitor) == ["success"] * 2 + ["cancelled"] * 8
    assert anchor_of(monitor).state == "cancelled"
    assert run_pending() == []
    monitor.refresh_from_db()
    progress = monitor.progress()
    assert (progress.status, progress.done, progress.cancelled) == ("cancelled", 2, 8)
    with pytest.raises(MonitorEnded):
        monitor.add([noop.call()])
    with pytest.raises(InvalidState, match="was cancelled"):
        retry_failed_details(monitor.pk)


@pytest.mark.parametrize("session", [None, "s"])
def test_nothing_of_a_cancelled_monitor_is_retried(session: str | None) -> None:
    """Its callback never runs, also when its job is retried with all other cancelled ones."""
    details = [fail.using(max_attempts=1).call(), *(noop.call() for _ in range(9))]
    monitor = start(details, on_end=echo.call("never"), session=session)
    run_some(2)
    cancel_monitor(monitor.pk)
    other = noop.delay()
    control.cancel([other.pk])
    ended = [*Job.objects.finished().values_list("pk", flat=True), monitor.anchor_id]

    assert control.retry(ended) == [other.pk]

    not_done = monitor.details().exclude(state="success").values_list("pk", flat=True)
    assert sorted(find_cancelled(ended)) == sorted([*not_done, monitor.anchor_id])
    assert [job.pk for job in run_pending()] == [other.pk]
    assert anchor_of(monitor).state == "cancelled"


def test_cancel_goes_on_when_whoever_began_it_has_died() -> None:
    monitor = start()
    ConcurrentJobMonitor.objects.filter(pk=monitor.pk).update(cancelled_at=timezone.now())
    feeder = Feeder()

    assert feeder.step("default") == 10
    feeder.step("default")

    assert states(monitor) == ["cancelled"] * 10
    assert anchor_of(monitor).state == "cancelled"
    assert find_open() == []


def test_monitor_that_has_ended_cannot_be_cancelled() -> None:
    monitor = start()
    run_pending()

    assert cancel_monitor(monitor.pk) == 0

    monitor.refresh_from_db()
    assert monitor.cancelled_at is None
