"""Monitors: what they feed, in which order, and what changes while they run."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.utils import timezone

from django_tenantqueue.exceptions import (
    InvalidArgument,
    InvalidOption,
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
    tune_monitor,
)
from django_tenantqueue.status.monitor_progress import estimate_pace
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import make_queue
from tests.operations.monitors import anchor_of, find_open, run_some, start, states
from tests.testapp.models import Report
from tests.testapp.tasks import add, echo, fail, fail_until, noop

pytestmark = pytest.mark.django_db


# details


def test_as_many_are_fed_as_may_be_in_flight() -> None:
    monitor = start()

    assert states(monitor) == ["ready"] * 3 + ["held"] * 7
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

    assert states(monitor) == ["success"] + ["ready"] * 3 + ["held"] * 6


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
    monitor = start([noop.using(limit_user="7").call() for _ in range(4)])

    assert states(monitor) == ["ready", "held", "held", "held"]
    assert list(monitor.details().order_by("pk").values_list("held_by", flat=True)) == [
        None,
        "limit_user",
        "limit_user",
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


@pytest.mark.heavy
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
    assert states(monitor) == ["ready"] * 6 + ["held"] * 4

    tune_monitor(monitor.pk, parallel=2)
    assert states(monitor) == ["ready"] * 2 + ["held"] * 8


def test_edits_of_the_row_are_found_by_the_duty() -> None:
    monitor = start()
    rows = ConcurrentJobMonitor.objects.filter(pk=monitor.pk)
    feeder = Feeder()
    assert feeder.step("default") == 0

    rows.update(parallel=5)
    assert feeder.step("default") == 2
    assert states(monitor) == ["ready"] * 5 + ["held"] * 5

    rows.update(paused=True)
    assert feeder.step("default") == 0
    assert states(monitor) == ["held"] * 10

    rows.update(paused=False, priority=7)
    assert feeder.step("default") == 5
    rows.update(priority=8)
    feeder.step("default")
    fed = monitor.details().filter(state="ready")
    assert set(fed.values_list("priority", "lane")) == {(8, 8)}


def test_row_that_a_duty_has_looked_at_is_closed() -> None:
    monitor = start()
    found = find_open()

    assert [(row.id, row.is_open) for row in found] == [(monitor.pk, False)]


def test_duty_goes_on_where_it_stopped() -> None:
    monitors = [start() for _ in range(5)]
    ConcurrentJobMonitor.objects.update(parallel=4)
    feeder = Feeder(most=2)

    assert [feeder.step("default") for _ in range(3)] == [2, 2, 1]

    assert [states(monitor).count("ready") for monitor in monitors] == [4] * 5
    assert feeder.after == 0


def test_duty_goes_on_behind_details_whose_monitors_were_deleted() -> None:
    monitors = [start() for _ in range(5)]
    ConcurrentJobMonitor.objects.filter(pk__in=[monitor.pk for monitor in monitors[:3]]).delete()
    ConcurrentJobMonitor.objects.update(parallel=4)
    feeder = Feeder(most=2)

    assert [feeder.step("default") for _ in range(3)] == [0, 1, 1]

    assert [states(monitor).count("ready") for monitor in monitors[3:]] == [4] * 2


def test_details_get_the_priority_when_they_are_fed() -> None:
    monitor = start(priority=300)
    one_update = "UPDATE tenantqueue_concurrentjobmonitor SET priority = 100"
    with connection.cursor() as cursor:
        cursor.execute(one_update)
    Feeder().step("default")

    assert set(monitor.details().values_list("state", "priority")) == {
        ("ready", 100),
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
    fed = monitor.details().filter(state="ready")
    assert set(fed.values_list("priority", "lane")) == {(3, 0)}
    assert not any(row.is_open for row in find_open(by_tenant=True))


def test_nothing_starts_when_it_is_paused() -> None:
    monitor = start()

    assert pause_monitors([monitor.pk]) == [monitor.pk]
    assert pause_monitors([monitor.pk]) == []
    assert run_pending() == []
    assert states(monitor) == ["held"] * 10
    assert monitor.progress().status == "paused"

    assert resume_monitors([monitor.pk]) == [monitor.pk]
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
    assert states(monitor).count("ready") == 3
    assert len(run_pending()) == 3
    assert Feeder().step("default") == 0

    MonitorPace.objects.update(fed_at=timezone.now() - timedelta(seconds=90))
    assert Feeder().step("default") == 3
    assert states(monitor) == ["success"] * 3 + ["ready"] * 3 + ["held"] * 4
    # it stays on its grid: half an interval of those 90 s is over already
    age = (timezone.now() - MonitorPace.objects.get().fed_at).total_seconds()
    assert 29 < age < 35

    tune_monitor(monitor.pk, interval_seconds=0)
    assert len(run_pending()) == 8


def test_interval_does_not_hold_up_what_is_too_much() -> None:
    monitor = start(interval=60)

    tune_monitor(monitor.pk, parallel=1)

    assert states(monitor).count("ready") == 1


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


# sessions


def test_next_of_a_session_starts_after_the_last_detail() -> None:
    first = start(session="s", tenant="acme")
    second = start(session="s", tenant="acme", on_end=echo.call("second"))
    last = noop.using(session="s", tenant="acme").delay()

    assert states(first).count("ready") == 3
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


def test_progress_is_of_one_moment_when_the_object_is_older() -> None:
    monitor = start([fail.using(max_attempts=1).call(), *(noop.call() for _ in range(3))])
    seen = {}

    for change in ({"paused": True}, {"paused": False, "parallel": 0}):
        tune_monitor(monitor.pk, **change)
        progress = monitor.progress()
        seen[str(change)] = (progress.status, progress.reason)
    tune_monitor(monitor.pk, parallel=1)
    run_some(1)
    tune_monitor(monitor.pk, stop_after_failures=1)
    stopped = monitor.progress()
    cancel_monitor(monitor.pk)

    assert list(seen.values()) == [("paused", ""), ("paused", "parallel is 0")]
    assert stopped.status == "stopped"
    assert monitor.progress().status == "cancelled"


def test_progress_knows_of_a_close_when_the_object_is_older() -> None:
    monitor = start([], keep_open=True)
    assert monitor.progress().status == "open"

    ConcurrentJobMonitor.objects.get(pk=monitor.pk).close()

    assert monitor.progress().status != "open"


def test_monitor_says_that_it_waits_behind_another_one() -> None:
    """Inside a queue and priority, jobs are claimed by id: the details of one come first."""
    first = start([echo.call(f"first {number}") for number in range(10)], parallel=3)
    second = start([echo.call(f"second {number}") for number in range(4)], parallel=4)
    other_queue = start(queue="other")
    more_urgent = start(priority=1)

    assert second.progress().reason == (
        f"its details wait behind those of monitor #{first.pk}, of the same queue and priority"
    )
    for monitor in (first, other_queue, more_urgent):
        assert (monitor.progress().status, monitor.progress().reason) == ("running", "")

    ran = run_pending()
    results = [job.result for job in ran if str(job.result).startswith(("first", "second"))]
    assert results == [f"first {n}" for n in range(10)] + [f"second {n}" for n in range(4)]


def test_monitor_says_nothing_of_others_when_its_details_run() -> None:
    start(parallel=3)
    second = start([noop.call() for _ in range(4)], parallel=4)
    running = second.details().order_by("pk").first()
    assert running is not None
    Job.objects.filter(pk=running.pk).update(
        state="running", worker_id=1, queued_at=timezone.now(), attempt=1
    )

    assert second.progress().reason == ""


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


def test_progress_says_that_the_slots_of_its_queue_bound_it() -> None:
    queue = make_queue("acme", "import", num_slots=2)
    monitor = start(tenant="acme", queue="import", parallel=8)

    assert monitor.progress().reason == (
        "its queue (acme / import) has slots for 2 at once, of 8 that may be in flight"
    )

    TenantQueue.objects.filter(pk=queue.pk).update(num_slots=8)
    assert monitor.progress().reason == ""


def test_progress_says_that_its_queue_is_paused() -> None:
    make_queue("acme", "import", paused=True)
    monitor = start(tenant="acme", queue="import")

    assert monitor.progress().reason == "its queue (acme / import) is paused"


@pytest.mark.django_db(transaction=True)
def test_coroutines_start_and_follow_a_monitor():
    async def follow():
        monitor = await ConcurrentJobMonitor.objects.astart(
            "all", [noop.call()], parallel=1, keep_open=True
        )
        added = await monitor.aadd([noop.call()])
        await monitor.aclose()
        progress = await monitor.aprogress()
        job = await (await noop.adelay()).arefresh()
        return added, progress.total, job.state

    assert async_to_sync(follow)() == (1, 2, "ready")
