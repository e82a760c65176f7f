"""Monitors: what they feed, in which order, what changes while they run, and how they end."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_tenantqueue import Unique
from django_tenantqueue.exceptions import (
    InvalidArgument,
    InvalidOption,
    MonitorEnded,
    NotAllowed,
    QueueRetired,
    TransitionRefused,
)
from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    ConcurrentJobMonitorDetail,
    Job,
    MonitorPace,
    TenantQueue,
)
from django_tenantqueue.operations import control
from django_tenantqueue.operations.monitor_control import (
    Feeder,
    cancel_monitor,
    pause_monitors,
    resume_monitors,
    retry_failed_details,
    tune_monitor,
)
from django_tenantqueue.operations.progress import estimate_pace
from django_tenantqueue.queries.claim import return_jobs
from django_tenantqueue.queries.monitors import OpenMonitor, find_open_monitors
from django_tenantqueue.testing import TEST_WORKER, run_commit_hooks, run_pending
from tests.testapp.models import Plain, Report
from tests.testapp.tasks import add, echo, fail, fail_until, noop

pytestmark = pytest.mark.django_db


def start(details: Any = None, **options: Any) -> ConcurrentJobMonitor:
    """Start a monitor, of ten noops unless it is said otherwise, and feed it."""
    details = [noop.call() for _ in range(10)] if details is None else details
    monitor = ConcurrentJobMonitor.objects.start("work", details, **{"parallel": 3, **options})
    run_commit_hooks("default")
    return monitor


def states(monitor: ConcurrentJobMonitor) -> list[str]:
    """Return the states of its details in their order."""
    run_commit_hooks("default")
    return list(monitor.details().order_by("pk").values_list("state", flat=True))


def run_some(most: int) -> None:
    """Run so many jobs, and give back the one more that is claimed to see whether it ends."""
    with pytest.raises(RuntimeError, match="there are still more"):
        run_pending(most=most)
    claims = Job.objects.active().values_list("pk", "claim_seq")
    return_jobs(connection.connection, TEST_WORKER, list(claims))


def anchor_of(monitor: ConcurrentJobMonitor) -> Job:
    """Return the job that stands for all details."""
    return Job.objects.get(pk=monitor.anchor_id)


# details


def test_as_many_are_fed_as_may_be_in_flight() -> None:
    monitor = start()

    assert states(monitor) == ["created"] * 3 + ["held"] * 7
    assert monitor.details().filter(held_by="monitor").count() == 7


def test_all_run_once_and_in_order_when_details_end() -> None:
    monitor = start([echo.call(number) for number in range(10)])

    ran = run_pending()

    assert [job.result for job in ran[:-1]] == list(range(10))
    assert ran[-1].pk == monitor.anchor_id
    assert states(monitor) == ["success"] * 10


def test_place_is_filled_when_one_has_ended() -> None:
    monitor = start()

    run_some(1)

    assert states(monitor) == ["success"] + ["created"] * 3 + ["held"] * 6


def test_a_retrying_detail_keeps_its_place() -> None:
    monitor = start([fail_until.call(2, 3600.0), *(noop.call() for _ in range(3))], parallel=1)

    run_pending()

    assert states(monitor) == ["scheduled", "held", "held", "held"]
    assert len(run_pending(scheduled=True)) == 5


def test_details_may_be_calls_methods_and_rows() -> None:
    reports = [Report.objects.create(title=f"report {number}") for number in range(3)]
    start(
        [
            add.call(1, second=2),
            noop,
            (reports[0], "execute", ("pdf",)),
            (reports[1], "execute", (), {"kind": "csv"}),
            (Report, "count"),
            (Report.objects.filter(pk__gte=reports[1].pk).order_by("pk"), "execute", ["xls"]),
            add.using(max_attempts=1, labels=["a"], timeout=5).call(3),
        ]
    )

    ran = run_pending()

    assert [job.result for job in ran] == [
        3,
        None,
        "report 0 as pdf",
        "report 1 as csv",
        3,
        "report 1 as xls",
        "report 2 as xls",
        3,
        None,
    ]
    assert (ran[7].max_attempts, ran[7].labels, ran[7].timeout_seconds) == (1, ["a"], 5.0)
    assert ran[0].max_attempts == 5


def test_a_queryset_with_a_method_is_enough() -> None:
    for number in range(3):
        Report.objects.create(title=str(number))

    monitor = start((Report.objects.order_by("title"), "execute"))

    assert [job.result for job in run_pending()[:3]] == ["0 as html", "1 as html", "2 as html"]
    assert monitor.progress().total == 3


def test_details_go_into_the_queue_of_the_monitor_or_of_their_task() -> None:
    start([noop.call(), noop.using(queue="own").call()], tenant="acme")
    start([noop.call(), noop.using(queue="own").call()], tenant="acme", queue="one")

    names = Job.objects.order_by("pk").filter(monitor_id__isnull=False)
    assert list(names.values_list("queue__tenant", "queue__name")) == [
        ("acme", name) for name in ("default", "default", "own", "one", "one", "one")
    ]


def test_details_pass_the_caps_of_their_users(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "DEFAULT_USER_SLOTS": 1}
    monitor = start([noop.using(user="7").call() for _ in range(4)])

    assert states(monitor) == ["created", "held", "held", "held"]
    assert list(monitor.details().order_by("pk").values_list("held_by", flat=True)) == [
        None,
        "user",
        "user",
        "monitor",
    ]
    assert len(run_pending()) == 5


def test_nothing_is_stored_when_a_detail_is_wrong() -> None:
    def details() -> Iterator[Any]:
        yield from (noop.call() for _ in range(6000))
        yield "noop"

    with pytest.raises(InvalidArgument, match=r"details\[6000\] is 'noop': give task\.call"):
        start(details())

    assert not Job.objects.exists()
    assert not ConcurrentJobMonitor.objects.exists()


def test_memory_is_bounded_when_details_stream_in() -> None:
    count = 20_000
    seen = []

    def details() -> Iterator[Any]:
        for number in range(count):
            if number % 1000 == 0:
                seen.append(tracemalloc.get_traced_memory()[0])
            yield echo.call({"number": number, "text": "x" * 500})

    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        monitor = start(details())
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert monitor.details().count() == count
    assert most - before < 40_000_000
    assert seen[-1] - seen[6] < 5_000_000  # and it does not rise with their number


# live changes


def test_more_are_fed_when_parallel_is_raised_and_taken_back_when_lowered() -> None:
    monitor = start()

    tune_monitor(monitor.pk, parallel=6)
    assert states(monitor) == ["created"] * 6 + ["held"] * 4

    tune_monitor(monitor.pk, parallel=2)
    assert states(monitor) == ["created"] * 2 + ["held"] * 8


def test_edits_of_the_row_are_found_by_the_duty() -> None:
    monitor = start()
    rows = ConcurrentJobMonitor.objects.filter(pk=monitor.pk)
    feeder = Feeder()
    assert feeder.step("default") == 0

    rows.update(parallel=5)
    assert feeder.step("default") == 2
    assert states(monitor) == ["created"] * 5 + ["held"] * 5

    rows.update(paused=True)
    assert feeder.step("default") == 0
    assert states(monitor) == ["held"] * 10

    rows.update(paused=False, priority=7)
    assert feeder.step("default") == 5
    rows.update(priority=8)
    feeder.step("default")
    fed = monitor.details().filter(state="created")
    assert set(fed.values_list("priority", "lane")) == {(8, 8)}


def test_row_that_a_duty_has_looked_at_is_closed() -> None:
    monitor = start()
    found = find_open()

    assert [(row.id, row.is_open) for row in found] == [(monitor.pk, False)]


def find_open(*, by_tenant: bool = False) -> list[OpenMonitor]:
    """Return what the duty sees."""
    return find_open_monitors("default", after=0, most=100, by_tenant=by_tenant)


def test_duty_goes_on_where_it_stopped(monkeypatch) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.monitor_control.SWEEP_MONITORS", 2)
    monitors = [start() for _ in range(5)]
    ConcurrentJobMonitor.objects.update(parallel=4)
    feeder = Feeder()

    assert [feeder.step("default") for _ in range(3)] == [2, 2, 1]

    assert [states(monitor).count("created") for monitor in monitors] == [4] * 5
    assert feeder.after == 0


def test_details_get_the_priority_when_they_are_fed() -> None:
    monitor = start(priority=300)
    one_update = "UPDATE tenantqueue_concurrentjobmonitor SET priority = 100"
    with connection.cursor() as cursor:
        cursor.execute(one_update)
    Feeder().step("default")

    assert set(monitor.details().values_list("state", "priority")) == {
        ("created", 100),
        ("held", 300),
    }
    other = noop.using(priority=200).delay()
    ran = run_pending()
    assert [job.pk for job in ran].index(other.pk) == len(ran) - 1
    assert set(monitor.details().values_list("priority", "lane")) == {(100, 100)}
    assert anchor_of(monitor).priority == 100


def test_lane_is_that_of_the_setting(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "PRIORITY_SCOPE": "tenant"}
    monitor = start()

    tune_monitor(monitor.pk, priority=3)

    run_commit_hooks("default")
    fed = monitor.details().filter(state="created")
    assert set(fed.values_list("priority", "lane")) == {(3, 0)}
    assert not any(row.is_open for row in find_open(by_tenant=True))


def test_nothing_starts_when_it_is_paused() -> None:
    monitor = start()

    assert pause_monitors([monitor.pk]) == 1
    assert pause_monitors([monitor.pk]) == 0
    assert run_pending() == []
    assert states(monitor) == ["held"] * 10
    assert monitor.progress().status == "running"  # this instance was read before
    monitor.refresh_from_db()
    assert monitor.progress().status == "paused"

    assert resume_monitors([monitor.pk]) == 1
    assert len(run_pending()) == 11


def test_retrying_detail_does_not_start_when_it_is_paused() -> None:
    monitor = start([fail_until.call(2, 3600.0), noop.call()], parallel=1)
    run_pending()
    assert states(monitor) == ["scheduled", "held"]

    pause_monitors([monitor.pk])
    assert states(monitor) == ["held", "held"]
    assert run_pending(scheduled=True) == []

    resume_monitors([monitor.pk])
    assert states(monitor) == ["scheduled", "held"]  # it waits for its time as before


def test_interval_feeds_at_its_pace() -> None:
    monitor = start(interval=60)
    assert states(monitor).count("created") == 3
    assert len(run_pending()) == 3
    assert Feeder().step("default") == 0

    MonitorPace.objects.update(fed_at=timezone.now() - timedelta(seconds=90))
    assert Feeder().step("default") == 3
    assert states(monitor) == ["success"] * 3 + ["created"] * 3 + ["held"] * 4
    # it stays on its grid: half an interval of those 90 s is over already
    age = (timezone.now() - MonitorPace.objects.get().fed_at).total_seconds()
    assert 29 < age < 35

    tune_monitor(monitor.pk, interval=0)
    assert len(run_pending()) == 8


def test_interval_does_not_hold_up_what_is_too_much() -> None:
    monitor = start(interval=60)

    tune_monitor(monitor.pk, parallel=1)

    assert states(monitor).count("created") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "x"}, "'name' cannot be tuned"),
        ({"session_key": "x"}, "it must be one of"),
    ],
)
def test_other_columns_are_not_tuned(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        tune_monitor(start().pk, **change)


# the end


def test_callback_runs_once_after_the_last_detail() -> None:
    monitor = start(on_done=echo.call("all done"))

    ran = run_pending()

    assert [job.result for job in ran][-1] == "all done"
    assert len(ran) == 11
    assert ran[-1].pk == monitor.anchor_id
    assert monitor.progress().status == "ended"
    assert Feeder().step("default") == 0
    assert run_pending() == []


def test_monitor_without_details_ends_at_once() -> None:
    monitor = start([], on_done=echo.call("nothing to do"))

    assert [job.result for job in run_pending()] == ["nothing to do"]
    assert monitor.progress().percent is None


def test_end_is_found_by_the_duty_when_its_release_was_lost() -> None:
    monitor = start(on_done=echo.call("done"))
    with connection.cursor() as cursor:  # the details end, nobody releases
        cursor.execute(
            "WITH gone AS (DELETE FROM tenantqueue_job_hot WHERE id <> %s RETURNING *) "
            "INSERT INTO tenantqueue_job_history (id, queue_id, lane, priority, final, state, "
            "finished_at, name, source_type, source_method, monitor_id) SELECT id, queue_id, lane, "
            "priority, true, 'success', now(), name, source_type, source_method, monitor_id "
            "FROM gone",
            [monitor.anchor_id],
        )

    assert Feeder().step("default") == 1

    assert [job.result for job in run_pending()] == ["done"]


def test_failed_callback_can_be_retried() -> None:
    monitor = start(on_done=fail.using(max_attempts=1).call())
    run_pending()
    assert anchor_of(monitor).state == "error"
    assert monitor.progress().failed == 0

    assert control.retry([monitor.anchor_id]) == [monitor.anchor_id]

    assert anchor_of(monitor).held_by == "details"
    run_commit_hooks("default")
    assert anchor_of(monitor).state == "created"


def test_retried_callback_waits_for_retried_details() -> None:
    details = [fail.using(max_attempts=1).call(), noop.call()]
    monitor = start(details, on_done=fail.using(max_attempts=1).call())
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

    assert states(monitor) == ["created", "held", "created"]
    assert monitor.details().order_by("pk")[1].held_by == "exclusive"
    run_pending()
    assert states(monitor) == ["success"] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unique": Unique("until_executed")}, "the callback of a monitor runs once"),
        ({"run_at": timedelta(hours=1)}, "the callback of a monitor runs once"),
        ({"user": "7"}, "the callback of a monitor runs once"),
        ({"expires_at": timedelta(hours=1)}, "count from the start of the monitor"),
        ({"tenant": "other"}, "belong to its tenant"),
    ],
)
def test_callback_is_refused_when_it_says_what_it_cannot(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        start(tenant="acme", on_done=noop.using(**options).call())


def test_no_details_are_taken_when_the_callback_waits_for_its_task() -> None:
    monitor = start(on_done=echo.call("done"))
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
    monitor = start([], keep_open=True, on_done=echo.call("closed"))
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
    assert states(monitor).count("created") == 0

    tune_monitor(monitor.pk, stop_after_failures=4)
    assert len(run_pending()) == 1
    assert retry_failed_details(monitor.pk) == 4
    assert len(run_pending()) == 4
    tune_monitor(monitor.pk, stop_after_failures=None)
    assert len(run_pending()) == 3  # the two that are left, and the end
    assert monitor.progress().failed == 6


def test_failed_details_run_again_when_it_has_ended() -> None:
    monitor = start([fail.using(max_attempts=1).call(), noop.call()], on_done=echo.call("done"))
    assert len(run_pending()) == 3

    assert retry_failed_details(monitor.pk) == 1

    assert monitor.progress().status == "running"
    assert [job.name for job in run_pending()] == ["tests.testapp.tasks.fail"]
    assert monitor.progress().status == "ended"
    assert retry_failed_details(monitor.pk) == 1


def test_retry_goes_in_steps(monkeypatch) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.monitor_control.STEP_ROWS", 2)
    monitor = start([fail.using(max_attempts=1).call() for _ in range(7)])
    run_pending()

    assert retry_failed_details(monitor.pk) == 7

    assert states(monitor) == ["created"] * 3 + ["held"] * 4


def test_cancelled_monitor_ends_without_its_callback(monkeypatch) -> None:
    monkeypatch.setattr("django_tenantqueue.operations.monitor_control.STEP_ROWS", 2)
    monitor = start(on_done=echo.call("never"))
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
    with pytest.raises(TransitionRefused, match="was cancelled"):
        retry_failed_details(monitor.pk)


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


# sessions


def test_next_of_a_session_starts_after_the_last_detail() -> None:
    first = start(session="s", tenant="acme")
    second = start(session="s", tenant="acme", on_done=echo.call("second"))
    last = noop.using(session="s", tenant="acme").delay()

    assert states(first).count("created") == 3
    assert states(second) == ["held"] * 10
    assert second.progress().status == "waiting"

    ran = [job.pk for job in run_pending()]

    assert len(ran) == 23
    assert ran.index(first.anchor_id) == 10
    assert ran.index(second.anchor_id) == 21
    assert ran[-1] == last.pk


def test_monitor_waits_for_a_job_of_its_session() -> None:
    job = noop.using(session="s").delay()
    run_commit_hooks("default")
    monitor = start(session="s")

    assert states(monitor) == ["held"] * 10

    assert run_pending()[0].pk == job.pk
    assert states(monitor) == ["success"] * 10


def test_monitor_that_has_its_turn_is_not_overtaken() -> None:
    monitor = start(session="s")
    urgent = noop.using(session="s", priority=1).delay()

    ran = [job.pk for job in run_pending()]

    assert ran.index(urgent.pk) == len(ran) - 1
    assert ran[-2] == monitor.anchor_id


def test_place_in_the_session_changes_with_the_priority() -> None:
    start([], session="s", keep_open=True)
    waiting = [start(session="s", priority=priority) for priority in (300, 301)]

    tune_monitor(waiting[1].pk, priority=299)

    run_commit_hooks("default")
    first = Job.objects.filter(held_by="session").order_by("priority").first()
    assert first is not None
    assert first.pk == waiting[1].anchor_id


def test_session_goes_on_when_the_monitor_is_cancelled() -> None:
    monitor = start(session="s")
    last = noop.using(session="s").delay()

    cancel_monitor(monitor.pk)

    assert [job.pk for job in run_pending()] == [last.pk]


def test_time_of_an_anchor_does_not_take_its_turn() -> None:
    monitor = start(session="s")

    control.change_run_at([monitor.anchor_id], timezone.now())

    run_commit_hooks("default")
    assert anchor_of(monitor).held_by == "details"
    assert len(run_pending()) == 11


# progress


def test_progress_counts_what_has_become_of_the_details() -> None:
    details = [
        *(noop.call() for _ in range(4)),
        fail.using(max_attempts=1).call(),
        fail_until.call(2, 3600.0),
        *(noop.call() for _ in range(6)),
    ]
    monitor = start(details, parallel=2)
    run_some(7)
    line = list(monitor.details().filter(held_by="monitor").values_list("pk", flat=True))
    control.cancel(line[-1:])
    run_commit_hooks("default")

    progress = monitor.progress()

    assert (progress.total, progress.done, progress.failed, progress.cancelled) == (12, 5, 1, 1)
    assert (progress.retrying, progress.ready, progress.in_line) == (1, 1, 3)
    assert (progress.left, progress.waiting) == (5, 5)
    assert progress.percent == pytest.approx(100 * 7 / 12)
    assert progress.ends_at is not None
    assert progress.ends_at_earliest is not None
    assert progress.ends_at_earliest <= progress.ends_at


def test_pace_is_that_of_the_ends_with_a_range() -> None:
    now = timezone.now()

    even = estimate_pace([now - timedelta(seconds=s) for s in range(101)], now)
    bursts = estimate_pace([now - timedelta(seconds=50 * (s // 50)) for s in range(101)], now)

    assert even is not None
    assert bursts is not None
    assert even.per_second == pytest.approx(1.0)
    assert 0.7 < even.low < even.per_second < even.high < 1.3
    assert bursts.per_second == pytest.approx(1.0)
    assert bursts.low < even.low
    assert bursts.high > even.high
    assert estimate_pace([now] * 4, now) is None


def test_end_lies_in_the_range_that_was_estimated() -> None:
    now = timezone.now()
    pace = estimate_pace([now - timedelta(seconds=s / 10) for s in range(200)], now)

    assert pace is not None
    assert pace.low < 10 < pace.high


def test_details_are_jobs() -> None:
    monitor = start()

    detail = monitor.details().first()

    assert isinstance(detail, ConcurrentJobMonitorDetail)
    assert detail.refresh().monitor_id == monitor.pk
    assert str(monitor) == f"work #{monitor.pk}"


# input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parallel": -1}, "parallel=-1: it must be an int from 0"),
        ({"parallel": True}, "parallel=True"),
        ({"interval": -1}, "interval=-1: it must be seconds or a timedelta"),
        ({"interval": timedelta(days=2)}, "from 0 to a day"),
        ({"priority": "high"}, "priority='high'"),
        ({"stop_after_failures": 0}, "stop_after_failures=0: it must be an int from 1"),
        ({"session": ""}, "session=''"),
        ({"queue": ""}, "queue=''"),
        ({"details": [noop.using(session="s").call()]}, "a detail has no session of its own"),
        ({"details": [noop.using(tenant="zeta").call()]}, "belong to its tenant, 'acme'"),
        ({"details": [noop.using(run_at=timedelta(1)).call()]}, "run when their monitor feeds"),
    ],
)
def test_bad_option_is_refused_at_the_call(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        start(**{"tenant": "acme", **options})
    assert not ConcurrentJobMonitor.objects.exists()


@pytest.mark.parametrize(
    ("details", "message"),
    [
        (7, "details=7: give task.call"),
        ([7], r"details\[0\] is 7"),
        ([(1, 2)], "names the method 2: it must be a str"),
        ([(Report, "count", "pdf")], "wrong arguments"),
        ([(Report, "nothing")], "has no method 'nothing'"),
        ([echo.call(object())], "argument 1 is of type object"),
        ([(Report.objects.all(), "nothing")], "has no method 'nothing'"),
    ],
)
def test_bad_detail_is_refused_at_the_call(details: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        start(details)


def test_bad_callback_is_refused_at_the_call() -> None:
    with pytest.raises(InvalidArgument, match="on_done is 'x'"):
        start(on_done="x")


def test_queryset_alone_is_no_detail() -> None:
    with pytest.raises(InvalidArgument, match="<Report queryset>"):
        start(Report.objects.all())


def test_wrong_arguments_are_refused_at_the_call() -> None:
    with pytest.raises(TypeError, match=r"tests\.testapp\.tasks\.add: missing"):
        add.call()


def test_methods_that_may_not_run_are_refused() -> None:
    plain = Plain.objects.create(title="a")
    with pytest.raises(NotAllowed, match=r"models\.Plain\.execute may not be run"):
        start([(plain, "execute")])
    with pytest.raises(NotAllowed):
        start([(Plain.objects.all(), "execute")])


def test_retired_queue_takes_no_details() -> None:
    TenantQueue.objects.create(tenant="acme", name="old", retired=True)
    with pytest.raises(QueueRetired):
        start(tenant="acme", queue="old")


def test_monitor_goes_with_the_callers_transaction() -> None:
    with transaction.atomic():
        start()
        transaction.set_rollback(True)

    assert not ConcurrentJobMonitor.objects.exists()
    assert not Job.objects.exists()


def test_all_runs_here_and_now_when_eager(settings) -> None:
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "EAGER": True}
    report = Report.objects.create(title="a")

    ConcurrentJobMonitor.objects.start(
        "now", [(report, "execute")], parallel=1, on_done=(report, "execute")
    )

    report.refresh_from_db()
    assert report.rows >= 1
    assert not Job.objects.exists()
