"""Unique jobs: make keys, find out who has them, and do what the strategy says.

A row of the table of keys never blocks by itself: whether it does is seen from its job's row, so
that nothing has to be cleaned up before another job may have the key.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connections, transaction
from django.utils import timezone

from ..batch_sizes import BATCH
from ..calls.unique import LOG, RAISE, REJECT, REPLACE, RESCHEDULE, Unique
from ..exceptions import Cancelled, DuplicateJob
from ..gate_keys import JobGates
from ..queries import unique as queries
from ..queries.base import array, fetch
from ..queries.control import edit_jobs
from ..queries.direct import fetch_prepared
from ..queries.enqueue import LOCKED_SECONDS, GatedJob, NewJob
from ..queries.unique import Placed, UniqueJob
from ..stored_error import stored_error
from .gates import cancel_waiting, release_later

logger = logging.getLogger("django_tenantqueue")

PATIENCE_SECONDS = 5.0
"""Seconds after which only one transaction at a time may keep a due job from starting."""
SETTLE_SECONDS = PATIENCE_SECONDS / 10
"""How long an enqueue in a transaction retries a locked job. Then it takes the key over."""
RETRY_SECONDS = LOCKED_SECONDS[1]
"""Pause between two of these attempts."""
WAITING = ("scheduled", "held", "ready")

FindQueue = Callable[[NewJob, int], None]
"""Called with the row and how many jobs room is needed for."""


@dataclass(frozen=True, slots=True)
class KeyedCall:
    """The arguments of a call as JSON text, and its key."""

    args: str
    key: str


# placing


def place(
    using: str,
    unique: Unique,
    row: GatedJob,
    calls: Sequence[KeyedCall],
    find_queue: FindQueue,
) -> list[Placed]:
    """Insert a job for each call whose key is free, in the caller's transaction.

    `row` is what they have in common. `find_queue` looks their queue up again when nothing could be
    inserted, and takes room in it. Returns what became of each call by the strategy, in order. Of
    calls with the same key the first counts, with `replace` the last.

    Waits for another uncommitted insert of the same key, and for some milliseconds while another
    session changes a waiting job. Raises DuplicateJob, QueueRetired and QueueFull.
    """
    strategy = unique.on_conflict
    is_atomic = strategy in (REPLACE, REJECT)
    with transaction.atomic(using=using) if is_atomic else nullcontext():
        placing = _Placing(using, unique, _unique_row(row, unique), find_queue)
        placed = placing.run(calls) if len(calls) == 1 else _place_many(placing, calls)
        if strategy == LOG:
            for call, result in zip(calls, placed, strict=True):
                if not result.is_new:
                    logger.info("not enqueued: job %s has the unique key %r", result.id, call.key)
        return placing.reject(calls, placed) if strategy == REJECT else placed


def _place_many(placing: _Placing, calls: Sequence[KeyedCall]) -> list[Placed]:
    """Place calls, some with the same key; return what became of each, in order."""
    strategy = placing.unique.on_conflict
    chosen: dict[str, int] = {}
    for nth, call in enumerate(calls):
        if strategy == REPLACE or call.key not in chosen:
            chosen[call.key] = nth
    if strategy == RAISE and len(chosen) < len(calls):
        twice = next(c.key for nth, c in enumerate(calls) if chosen[c.key] != nth)
        raise DuplicateJob(None, twice)
    order = sorted(chosen.values())
    found = dict(zip(order, placing.run([calls[nth] for nth in order]), strict=True))
    return [
        found[nth] if nth in found else found[chosen[call.key]]._replace(is_new=False)
        for nth, call in enumerate(calls)
    ]


def _unique_row(row: GatedJob, unique: Unique) -> UniqueJob:
    return {
        **row,
        "keys": [],
        "ttl": unique.ttl_seconds,
        "excludes": unique.excludes,
        "passed_over": "{}",
    }


@dataclass(slots=True)
class _Placing:
    """Places calls with different keys: looks again until each has a job."""

    using: str
    unique: Unique
    row: UniqueJob
    find_queue: FindQueue
    passed_over: set[int] = field(default_factory=set)
    """Jobs whose keys are taken over: replaced, or nothing could be learnt about them."""

    def run(self, calls: Sequence[KeyedCall]) -> list[Placed]:
        """Return what became of each call, in order."""
        done: dict[int, Placed] = {}
        left = list(range(len(calls)))
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            found = {left[at]: put for at, put in self._look([calls[n] for n in left]).items()}
            changed = self._settle(found, calls)
            done |= {nth: placed for nth, placed in found.items() if placed.id not in changed}
            missing = len(left) - len(found)
            left = [nth for nth in left if nth not in done]
            if not left:
                return [done[nth] for nth in range(len(calls))]
            if missing:  # another session took a key, or the queue has changed
                self.find_queue(self.row, missing)
            if time.monotonic() > end:
                self.passed_over |= changed
            elif missing or not changed <= self.passed_over:  # else all have been replaced
                time.sleep(RETRY_SECONDS)

    def _look(self, calls: Sequence[KeyedCall]) -> dict[int, Placed]:
        self._fill(calls)
        self.row["passed_over"] = array(sorted(self.passed_over))
        return queries.insert_unique_jobs(connections[self.using], self.row)

    def _fill(self, calls: Sequence[KeyedCall]) -> None:
        self.row["args"] = f"[{','.join(call.args for call in calls)}]"
        self.row["keys"] = [call.key for call in calls]

    def _settle(self, found: dict[int, Placed], calls: Sequence[KeyedCall]) -> set[int]:
        """Apply the strategy to the existing jobs; return those to check again."""
        existing = {nth: job for nth, job in found.items() if not job.is_new}
        if not existing:
            return set()
        strategy = self.unique.on_conflict
        if strategy == RAISE:
            nth, first = next(iter(existing.items()))
            raise DuplicateJob(first.id, calls[nth].key)
        waiting = {job.id for job in existing.values() if job.state in WAITING}
        if strategy == REPLACE:
            return self._cancel(waiting)
        if strategy == RESCHEDULE:
            return waiting - self._reschedule(waiting)
        if strategy == REJECT:
            return set()
        return self._keep({job.id for job in existing.values() if job.ends_at_start})

    def _cancel(self, ids: set[int]) -> set[int]:
        """Cancel waiting existing jobs and return them all.

        The keys of those cancelled are free, also one that would outlive its job; others have
        begun, or another session has locked them.
        """
        if ids:
            error = json.dumps(
                stored_error(Cancelled, "replaced by a later job with its unique key")
            )
            done = cancel_waiting(self.using, sorted(ids), error=error)
            self.passed_over |= done.keys()
            release_later(self.using, done.values())
        return ids

    def _reschedule(self, ids: set[int]) -> set[int]:
        """Give waiting existing jobs the new job's run_at; return those that have it."""
        if not ids:
            return ids
        delay = timedelta(seconds=self.row["delay_seconds"])
        run_at = self.row["run_at"] or timezone.now() + delay
        moved = edit_jobs(self.using, "set_run_at", sorted(ids), run_at=run_at)
        release_later(self.using, [edit.gates for edit in moved.values()])
        return set(moved)

    def _keep(self, ids: set[int]) -> set[int]:
        """Keep existing jobs from starting before the caller's commit; return them if that is too
        late.

        Outside a transaction what the caller has written is committed, and the existing job was
        seen waiting after that.
        """
        wrapper = connections[self.using]
        if not ids or not wrapper.in_atomic_block:
            return set()
        kept = queries.keep_existing_jobs(wrapper, ids, patience_seconds=PATIENCE_SECONDS)
        return set() if kept else ids

    def reject(self, calls: Sequence[KeyedCall], placed: list[Placed]) -> list[Placed]:
        """Store the duplicates as cancelled jobs; return `placed` with these in their places."""
        rejected = [nth for nth, result in enumerate(placed) if not result.is_new]
        if not rejected:
            return placed
        self._fill([calls[nth] for nth in rejected])
        errors = json.dumps(
            [
                stored_error(DuplicateJob, f"job {placed[nth].id} had its unique key")
                for nth in rejected
            ]
        )
        row = {**self.row, "errors": errors}
        made = fetch_prepared(connections[self.using], "insert_rejected_jobs", row)
        for nth, (job_id,) in zip(rejected, made, strict=True):
            placed[nth] = Placed(int(job_id), "cancelled", True, False)
        return placed


# letting go


def keys_to_free(ended: Iterable[tuple[int, JobGates]]) -> list[tuple[str, int]]:
    """Return (key, job id) of those of these ended jobs that have a key."""
    return [(gates.unique, job_id) for job_id, gates in ended if gates.unique is not None]


@dataclass(slots=True)
class KeyPruning:
    """Deletes keys that no longer block, a bounded number in each step."""

    after: str = ""

    def step(self, using: str) -> int:
        """Delete expired keys, and stale ones among the next; return how many."""
        expired = len(fetch(using, "prune_expired_keys", {"most": BATCH}))
        params = {"after": self.after, "most": BATCH}
        ((last, seen, pruned),) = fetch(using, "prune_stale_keys", params)
        self.after = (last or "") if seen == BATCH else ""
        return expired + int(pruned)
