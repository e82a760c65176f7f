"""Unique jobs against plain ones: new keys and duplicates, with and without transactions."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from django.db import transaction

from django_tenantqueue import Unique

from ..bench import Bench
from ..bench_app import tasks
from ..measure import ratios
from ..results import Incorrect, Row, Sample, at_most

BLOCKS = 10
BACKLOG = 10_000
"""Jobs that wait already."""
MOST_DUPLICATE = 2.0
"""Largest cost of a duplicate, as a multiple of a plain job."""

Times = dict[str, float]
AUTOCOMMIT, EACH, ONE = "autocommit", "a transaction each", "inside one transaction"


def run(bench: Bench) -> Iterator[Row]:
    """Time a call of each kind, in autocommit mode and in transactions."""
    bench.use("main")
    calls = bench.size(2_000, 400)
    for where in (AUTOCOMMIT, EACH, ONE):
        rounds: list[Times] = bench.rounds(lambda where=where: _times(bench, calls, where))
        plain = [times["plain"] for times in rounds]
        # one that relies on a waiting job keeps it from starting, which takes three round trips: no
        # bound where the commit, which pays for a plain job most, is not among what is compared
        unbounded = {"new key", "duplicate of a waiting one"} if where == ONE else {"new key"}
        yield Row(
            "unique",
            f"plain .delay(), {where}",
            "µs",
            [_micro(s) for s in plain],
            higher_is_better=False,
        )
        for name in ("new key", "duplicate", "duplicate of a waiting one"):
            shares = ratios([times[name] for times in rounds], plain)
            yield Row(
                "unique",
                f"{name} / plain, {where}",
                "×",
                [Sample(share) for share in shares],
                higher_is_better=False,
                target=None if name in unbounded else at_most(MOST_DUPLICATE),
                digits=2,
            )
    keys = bench.size(10_000, 2_000)
    yield Row(
        "unique", f"enqueue_many of {keys:,}, new keys", "jobs/s", _bulk(bench, keys, new=True)
    )
    yield Row(
        "unique", f"enqueue_many of {keys:,}, one key", "jobs/s", _bulk(bench, keys, new=False)
    )


def _micro(seconds: float) -> Sample:
    return Sample(seconds * 1e6)


def _times(bench: Bench, calls: int, where: str) -> Times:
    """Return the seconds of one call of each kind; blocks alternate, to meet the same machine."""
    bench.reset()
    bench.make_queues(["wide"])
    plain = tasks.noop_async.using(tenant="wide")
    numbers = itertools.count()
    fresh = plain.using(unique=Unique("until_executed", key=lambda: f"new-{next(numbers)}"))
    executed = plain.using(unique=Unique("until_executed", key="executed", ttl=600))
    waiting = plain.using(unique=Unique("until_and_while_executing", key="waiting"))
    kinds: dict[str, Callable[[], Any]] = {
        "plain": plain.delay,
        "new key": fresh.delay,
        "duplicate": executed.delay,
        "duplicate of a waiting one": waiting.delay,
    }
    for once in kinds.values():
        for _ in range(10):
            once()
    # the table of any day: the plans for an almost empty one are another matter, see partitions.md
    plain.enqueue_many([()] * BACKLOG)
    bench.vacuum()
    bench.settle()
    seconds = dict.fromkeys(kinds, 0.0)
    each = calls // BLOCKS
    for block in range(BLOCKS):
        for name in list(kinds) if block % 2 else list(reversed(kinds)):
            once = kinds[name]
            began = time.perf_counter()
            with transaction.atomic() if where == ONE else nullcontext():
                for _ in range(each):
                    with transaction.atomic() if where == EACH else nullcontext():
                        once()
            seconds[name] += time.perf_counter() - began
    stored = bench.value("SELECT count(*) FROM tenantqueue_job_hot")
    if stored != BACKLOG + 2 * (BLOCKS * each + 10) + 2:
        raise Incorrect(f"{stored} jobs are stored")
    return {name: taken / (BLOCKS * each) for name, taken in seconds.items()}


def _bulk(bench: Bench, keys: int, *, new: bool) -> list[Sample]:
    return bench.rounds(lambda: _bulk_once(bench, keys, new))


def _bulk_once(bench: Bench, keys: int, new: bool) -> Sample:
    bench.reset()
    bench.make_queues(["wide"])
    task = tasks.noop_async.using(tenant="wide")
    numbers = itertools.count()
    key = (lambda: f"new-{next(numbers)}") if new else "one"
    bound = task.using(unique=Unique("until_executed", key=key))
    task.enqueue_many([()])
    bench.settle()
    began = time.perf_counter()
    ids = bound.enqueue_many([()] * keys)
    seconds = time.perf_counter() - began
    if len(ids) != keys or len(set(ids)) != (keys if new else 1):
        raise Incorrect(f"{len(set(ids))} jobs for {keys} calls")
    return Sample(keys / seconds, keys)
