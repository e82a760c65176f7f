"""Monitors with real workers: strict, tuned live, and with one callback however workers die."""

import os
import random
import signal
import time
from datetime import timedelta

import pytest

from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.operations.monitor_control import (
    cancel_monitor,
    pause_monitors,
    tune_monitor,
)
from django_tenantqueue.states import State
from tests.intervals import Limits, breaches, most_at_once
from tests.testapp.models import Effect, Interval
from tests.testapp.tasks import noop, work, write_effect
from tests.timing import TooLate, assert_within

from .tasks import async_hold
from .workers import Gate, Workers, clock, make_queue, wait_for_end, wait_until

UNLIMITED = None
FULL = bool(os.environ.get("TENANTQUEUE_FULL_SIZE"))
"""Whether the runs are to be large."""
SOON = timedelta(seconds=1)
"""A change of a monitor's row takes effect within a second."""


def start(count: int, milliseconds: float = 30.0, **options) -> ConcurrentJobMonitor:
    make_queue("acme", num_slots=UNLIMITED)
    details = (work.call("acme", milliseconds) for _ in range(count))
    return ConcurrentJobMonitor.objects.start("work", details, tenant="acme", **options)


def wait_until_ended(monitor: ConcurrentJobMonitor, timeout: float = 60.0) -> Job:
    return wait_for_end([monitor.anchor_id], timeout)[0]


def bodies(**filters: object) -> list[tuple[object, object]]:
    return list(Interval.objects.filter(**filters).values_list("started_at", "ended_at"))


def test_limit_holds_when_it_is_changed_while_it_runs(workers: Workers):
    count, changes = 600, ((5, 150), (30, 220))
    if FULL:
        count, changes = 50_000, ((5, 5_000), (100, 5_500))
    for _ in range(2):
        workers.start("--threads=60" if FULL else "--threads=20")
    monitor = start(count, parallel=20)
    limits = Limits(20)

    def ended(count: int) -> None:
        finished = monitor.details().filter(final=True)
        wait_until(lambda: finished.count() >= count, 60, f"{count} details have ended")

    in_effect = clock()
    for parallel, when in changes:
        ended(when)
        time_over(in_effect)
        before = clock()
        tune_monitor(monitor.pk, parallel=parallel)
        in_effect = clock() + SOON
        limits.change(parallel, before=before, after=in_effect)

    anchor = wait_until_ended(monitor, 900.0 if FULL else 60.0)

    rows = list(monitor.details().values_list("queued_at", "finished_at"))
    assert len(rows) == len(bodies()) == count
    assert set(monitor.details().values_list("state", flat=True)) == {State.SUCCESS}
    assert breaches(rows, limits) == []
    assert breaches(bodies(), limits) == []
    assert most_at_once(rows) > 20  # the raised limit was used, too
    assert anchor.queued_at > max(finished for _, finished in rows)


def test_raw_edit_of_the_row_takes_effect_within_a_second(workers: Workers):
    workers.start("--threads=20")
    monitor = start(2000, 20.0, parallel=10)
    row = ConcurrentJobMonitor.objects.filter(pk=monitor.pk)
    wait_until(lambda: len(bodies()) > 20)

    row.update(paused=True)
    paused = clock()
    time_over(paused + SOON)
    late = Interval.objects.filter(started_at__gt=paused + SOON).count()
    late += monitor.details().filter(state=State.READY).count()
    if late:
        raise TooLate(f"{late} details were let through and had not begun within {SOON}")

    row.update(paused=False, parallel=3, priority=100)
    resumed = clock()
    wait_until(lambda: Interval.objects.filter(started_at__gt=resumed).exists(), 1.5)
    wait_until(lambda: Interval.objects.filter(started_at__gt=resumed).count() > 20)
    later = Interval.objects.filter(started_at__gt=resumed, ended_at__isnull=False)
    assert most_at_once(later.values_list("started_at", "ended_at")) <= 3
    assert monitor.details().filter(priority=100).exists()
    cancel_monitor(monitor.pk)


def time_over(moment) -> None:
    """Wait until the database's clock has passed a moment."""
    wait_until(lambda: clock() > moment, 10)


def test_interval_feeds_at_its_pace(workers: Workers):
    workers.start("--threads=8")
    monitor = start(6, 0.0, parallel=2, interval=1.0)

    wait_until_ended(monitor)

    starts = sorted(Interval.objects.values_list("started_at", flat=True))
    gaps = [(starts[at] - starts[at - 2]).total_seconds() for at in (2, 4)]
    assert_within(2.0, max(gaps))
    # when they were fed: a worker that stalls may begin two of them close together
    fed = sorted(monitor.details().values_list("queued_at", flat=True))
    gaps = [(fed[at] - fed[at - 2]).total_seconds() for at in (2, 4)]
    assert min(gaps) > 0.4


def test_others_do_not_wait_while_a_monitor_runs(workers: Workers):
    workers.start("--threads=4")
    monitor = start(400, 5.0, parallel=2)
    wait_until(lambda: len(bodies()) > 20)
    make_queue("zeta", num_slots=5)

    jobs = [noop.using(tenant="zeta").delay() for _ in range(20)]
    ended = wait_for_end([job.pk for job in jobs])

    assert_within(2.0, max(job.wait_duration for job in ended))
    assert not Job.objects.filter(pk=monitor.anchor_id, final=True).exists()
    pause_monitors([monitor.pk])


def test_next_of_a_session_starts_when_the_last_detail_has_ended(workers: Workers):
    make_queue("acme", num_slots=UNLIMITED)
    monitors = [
        ConcurrentJobMonitor.objects.start(
            str(number),
            [work.call(str(number), 20.0) for _ in range(20)],
            parallel=5,
            tenant="acme",
            session="s",
        )
        for number in range(3)
    ]
    for _ in range(2):
        workers.start("--threads=5")

    for monitor in monitors:
        wait_until_ended(monitor)

    spans = [
        (min(starts), max(ends))
        for starts, ends in (
            zip(
                *Interval.objects.filter(key=str(n)).values_list("started_at", "ended_at"),
                strict=True,
            )
            for n in range(3)
        )
    ]
    assert spans[0][1] < spans[1][0]
    assert spans[1][1] < spans[2][0]
    assert 1 < most_at_once(bodies()) <= 5


@pytest.mark.parametrize("seed", range(200 if FULL else 5))
@pytest.mark.heavy
def test_callback_runs_once_when_workers_die_at_the_end(workers: Workers, gate: Gate, seed: int):
    make_queue("acme", num_slots=UNLIMITED)
    chance = random.Random(seed)
    monitor = ConcurrentJobMonitor.objects.start(
        "work",
        [*(work.call("acme", 5.0) for _ in range(8)), async_hold.call(str(gate))],
        parallel=4,
        tenant="acme",
        on_end=write_effect.using(max_attempts=5).call("done"),
    )
    runners = [workers.start(), workers.start()]
    wait_until(lambda: monitor.details().filter(final=True).count() == 8)
    # the last detail ends, and what lets the callback through may die before or after it does
    gate.open()
    end = time.monotonic() + chance.uniform(0.0, 0.03)
    while time.monotonic() < end:
        pass
    victim = chance.choice(runners)
    victim.send_all(signal.SIGKILL)

    anchor = wait_until_ended(monitor)

    assert anchor.state == State.SUCCESS
    runs = Effect.objects.filter(note="done")
    assert list(runs.values_list("job_id", flat=True)) == [monitor.anchor_id]
    assert Job.objects.filter(task=write_effect.name).count() == 1
