"""The rate of a worker over a stretch of time, while the number of waiting jobs is kept."""

from __future__ import annotations

import time
from collections.abc import Callable

from django_tenantqueue.queries.enqueue import wake_any_workers

from .bench import STALL_SECONDS, Bench
from .fill import PRIORITY, add_waiting
from .results import Incorrect, Sample

WARM_UP_SECONDS = 1.0
PAUSE_SECONDS = 0.004


class Feeder:
    """Puts jobs into one queue as fast as they leave it."""

    def __init__(self, bench: Bench, queue_id: int, level: int) -> None:
        self.added = 0
        self.times_empty = 0
        self._bench = bench
        self._queue_id = queue_id
        self._level = level
        self._next_id = 1 + bench.value("SELECT last_value FROM tenantqueue_job_id_seq")

    def feed(self) -> None:
        """Fill up what is missing; at most as much as is to wait when it was little to begin with.

        Ids of one queue and priority leave in their order, so the first tells how many wait.
        """
        first = self._bench.value(
            "SELECT coalesce((SELECT id FROM tenantqueue_job_hot WHERE state = 'ready' "
            "AND lane = %s AND queue_id = %s ORDER BY priority, id LIMIT 1), %s)",
            *(PRIORITY, self._queue_id, self._next_id),
        )
        missing = self._level - (self._next_id - first)
        if missing >= min(100, self._level // 10):
            made = add_waiting(self._bench.db, [self._queue_id], missing)
            empty = first == self._next_id
            self._next_id += made
            self.added += made
            if empty:
                # These rows came by SQL, which wakes no worker.
                self.times_empty += 1
                wake_any_workers("default", most=1000)


def measure_window(
    bench: Bench, waiting: int, seconds: float, feeder: Feeder | None = None
) -> Sample:
    """Start one worker and return the rate at which it ends jobs, once it is warm.

    Raises Incorrect unless all jobs that were put in are there afterwards, in a good state.
    """
    first_id = bench.value("SELECT min(id) FROM tenantqueue_job_hot WHERE state = 'ready'")
    held = bench.value("SELECT count(*) FROM tenantqueue_job_hot WHERE state <> 'ready'")
    feed = (lambda: None) if feeder is None else feeder.feed
    bench.settle()
    with bench.workers() as workers:
        started = time.monotonic()

        def under_way() -> bool:
            workers.check()
            if time.monotonic() - started > STALL_SECONDS:
                raise Incorrect(f"no job has ended within {STALL_SECONDS:.0f} s")
            return _has_ended(bench, first_id)

        _repeat(feed, under_way)
        _repeat(feed, _after(WARM_UP_SECONDS))
        empty_before = 0 if feeder is None else feeder.times_empty
        meter = bench.meter(workers)
        begin = bench.value("SELECT clock_timestamp()")
        _repeat(feed, _after(seconds))
        end = bench.value("SELECT clock_timestamp()")
        cost = meter.read()
    row = bench.db.execute(
        "SELECT count(*), max(finished_at) < %(end)s - interval '0.1 s' "
        "FROM tenantqueue_job_history "
        "WHERE id >= %(first)s AND finished_at >= %(begin)s AND finished_at < %(end)s",
        {"first": first_id, "begin": begin, "end": end},
    ).fetchone()
    assert row is not None
    jobs, ran_dry = row
    _check(bench, first_id, held, waiting + (0 if feeder is None else feeder.added))
    note = "too low: there was nothing left to run" if ran_dry else ""
    if feeder is not None and feeder.times_empty > empty_before:
        note = f"a lower bound: the queue was empty {feeder.times_empty - empty_before} times"
    return Sample(jobs / (end - begin).total_seconds(), jobs, cost, note)


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def _repeat(action: Callable[[], None], ready: Callable[[], bool]) -> None:
    while not ready():
        action()
        time.sleep(PAUSE_SECONDS)


def _has_ended(bench: Bench, first_id: int) -> bool:
    ended: bool = bench.value(
        "SELECT EXISTS (SELECT FROM tenantqueue_job_history WHERE id >= %s)", first_id
    )
    return ended


def _check(bench: Bench, first_id: int, held: int, expected: int) -> None:
    left = dict(
        bench.db.execute("SELECT state, count(*) FROM tenantqueue_job_hot GROUP BY 1").fetchall()
    )
    ended = dict(
        bench.db.execute(
            "SELECT state, count(*) FROM tenantqueue_job_history WHERE id >= %s GROUP BY 1",
            [first_id],
        ).fetchall()
    )
    whole = left.get("ready", 0) + ended.get("success", 0)
    if (
        whole != expected
        or set(ended) - {"success"}
        or sum(left.values()) - left.get("ready", 0) != held
    ):
        raise Incorrect(f"{expected} jobs were put in; left are {left}, ended have {ended}")
