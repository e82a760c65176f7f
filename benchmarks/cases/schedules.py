"""Many schedules: how late they are fired when the leader is killed, and what they cost at rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from statistics import median

from django_tenantqueue.contrib.schedules.models import Schedule

from ..bench import STALL_SECONDS, Bench
from ..bench_app import tasks
from ..fleet import Fleet
from ..results import Incorrect, Row, Sample, at_most
from ..workers import Workers
from .idle import WORKERS, rest

LATE_SECONDS = 10.0
MOST_PERCENT = 1.0
LOOK_SECONDS = 0.005


def run(bench: Bench) -> Iterator[Row]:
    """Let a tenth of them be due at once, and then none for a while."""
    bench.use("main")
    schedules, due = bench.size(20_000, 1_000), bench.size(2_000, 500)
    yield Row(
        "schedules",
        f"{due:,} of {schedules:,} due at once, the leader killed: the last is fired after",
        "s",
        bench.rounds(lambda: _fire(bench, schedules, due)),
        higher_is_better=False,
        target=at_most(LATE_SECONDS),
        digits=2,
    )
    workers, pairs, seconds = bench.size(WORKERS, 10), bench.size(4, 1), bench.size(10, 2)
    yield Row(
        "schedules",
        f"{workers} idle workers and the server: what {schedules:,} schedules add",
        "% of a core",
        bench.rounds(lambda: _idle(bench, schedules, workers, pairs, seconds)),
        higher_is_better=False,
        target=at_most(MOST_PERCENT),
        digits=2,
    )
    _make_schedules(bench, 0)


def _make_schedules(bench: Bench, count: int) -> None:
    """Put these in the place of all schedules. None of them is due within a day."""
    later = bench.value("SELECT now()") + timedelta(days=1)
    bench.db.execute("TRUNCATE tenantqueue_schedule")
    Schedule.objects.bulk_create(
        Schedule(
            name=f"schedule-{number}",
            tenant=f"tenant-{number:05}",
            task=tasks.stamp.name,
            args=[number],
            expression=f"{later.minute} {later.hour} * * *",
            tick_at=later,
            next_at=later,
        )
        for number in range(count)
    )
    bench.db.execute("VACUUM (ANALYZE) tenantqueue_schedule")


def _fire(bench: Bench, schedules: int, due: int) -> Sample:
    """Return how late the last one is fired, in seconds. Raises Incorrect unless each is, once."""
    bench.reset()
    bench.make_queues([f"tenant-{number:05}" for number in range(due)], paused=False)
    _make_schedules(bench, schedules)
    bench.new_log()
    with bench.workers(commands=2) as workers:
        bench.wait_until_idle(workers)
        leader = _child_of_leader(bench, workers)
        tick = _let_be_due(bench, due)
        _wait(lambda: _waiting(bench, tick) <= due - due // 4, "a quarter is fired")
        workers.kill_command_of(leader)
        left = _waiting(bench, tick)
        if not left:
            raise Incorrect("all were fired before the leader was killed")
        _wait(lambda: not _waiting(bench, tick), "all are fired")
        seconds = (bench.value("SELECT clock_timestamp()") - tick).total_seconds()
        bench.wait_until_done(workers)
    row = bench.db.execute(
        "SELECT count(*), count(DISTINCT args), count(*) FILTER (WHERE state = 'success') "
        "FROM tenantqueue_job_history"
    ).fetchone()
    if row != (due, due, due):
        raise Incorrect(f"{due} schedules were due; (jobs, different ones, successes): {row}")
    return Sample(seconds, note=f"{due - left:,} were fired before the kill")


def _child_of_leader(bench: Bench, workers: Workers) -> int:
    """Return the process id of a child of the worker that does the maintenance."""
    found: list[int] = []

    def is_known() -> bool:
        found[:] = bench.value(
            "SELECT coalesce(array_agg(w.pid), '{}') FROM tenantqueue_duty d "
            "JOIN tenantqueue_worker w ON starts_with(w.name, d.worker || '.') "
            "WHERE d.name = 'fire_schedules'"
        )
        return bool(found)

    workers.wait_for(is_known, "a worker does the maintenance")
    return found[0]


def _let_be_due(bench: Bench, count: int) -> datetime:
    """Give the first of them a tick in a second; return it."""
    tick: datetime = bench.value("SELECT clock_timestamp() + interval '1 second'")
    chosen = Schedule.objects.order_by("pk").values("pk")[:count]
    Schedule.objects.filter(pk__in=chosen).update(tick_at=tick, next_at=tick)
    return tick


def _waiting(bench: Bench, tick: datetime) -> int:
    """Return how many have not fired this tick."""
    count: int = bench.value(
        "SELECT count(*) FROM tenantqueue_schedule "
        "WHERE enabled AND next_at IS NOT NULL AND next_at <= %s",
        tick,
    )
    return count


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + STALL_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise Incorrect(f"not within {STALL_SECONDS:.0f} s: {what}")
        time.sleep(LOOK_SECONDS)


def _idle(bench: Bench, schedules: int, workers: int, pairs: int, seconds: float) -> Sample:
    """Return what the schedules add: the median of turns without them and with them."""
    bench.reset()
    bench.make_queues(["wide"], paused=False)
    _make_schedules(bench, schedules)
    bench.db.execute("CREATE TEMPORARY TABLE kept AS TABLE tenantqueue_schedule")
    bench.vacuum()
    without, added = [], []
    with bench.fleet(workers, seconds=0.0, supervised=True) as fleet:
        bench.wait_until_idle(fleet)
        time.sleep(seconds)
        for _ in range(pairs):
            bench.db.execute("TRUNCATE tenantqueue_schedule")
            without.append(_share(bench, fleet, seconds))
            bench.db.execute("INSERT INTO tenantqueue_schedule TABLE kept")
            bench.db.execute("VACUUM (ANALYZE) tenantqueue_schedule")
            added.append(_share(bench, fleet, seconds) - without[-1])
    bench.db.execute("DROP TABLE kept")
    note = f"{median(without):.1f} % without them, workers and server together"
    if bench.server.postmaster is None:
        note += "; the server is on another machine: not measured"
    return Sample(median(added), note=f"{note}; {min(added):+.1f} to {max(added):+.1f} %")


def _share(bench: Bench, fleet: Fleet, seconds: float) -> float:
    """Return which part of a core the fleet and the server use, in percent."""
    time.sleep(1.0)
    bench.settle()
    cost = rest(bench, fleet, seconds)
    return 100 * (cost.python_cpu_seconds + (cost.server_cpu_seconds or 0.0)) / cost.seconds
