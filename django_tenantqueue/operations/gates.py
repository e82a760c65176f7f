"""Release jobs at their gates: monitors, sessions, user limits, exclusive keys.

A job with gates is `held` in the line of the first one it has not passed. A release makes as many
ready as a gate allows. It runs after the commit that makes room, and takes only its own locks.
Within about a second, a sweep finds the jobs that a crash or a lock kept waiting.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

import psycopg
from django.db import DatabaseError, connections, transaction

from ..batch_sizes import SMALL_BATCH
from ..conf import get_settings
from ..exceptions import DuplicateJob
from ..gate_keys import EXCLUSIVE, LIMIT_USER, MONITOR, ORDER, SESSION, TASK, JobGates
from ..queries import control as control_queries
from ..queries import enqueue as enqueue_queries
from ..queries import gates as queries
from ..queries import monitors as monitor_queries
from ..queries.base import Where, fetch
from ..queries.control import Changed
from ..queries.follow_ups import FollowUp
from ..queries.gates import Keys, Released, add_gates
from ..stored_error import stored_error
from . import task_gate
from .gate_transaction import gate_transaction

logger = logging.getLogger("django_tenantqueue")


def keys_of(jobs: Iterable[JobGates]) -> Keys:
    """Return the keys of all gates of these jobs."""
    keys: Keys = {}
    for gates in jobs:
        add_gates(keys, gates.keys().items())
    return keys


def release(where: Where, keys: Keys) -> Released:
    """Release jobs at these gates; return how many became ready, and where.

    A gate that another session releases for more than 50 ms is left to the sweep.
    """
    total = task_gate.release_tasks(where, keys.get(TASK, ()))
    batches = deque((*_batches(keys), *_batches(total.later)))
    total.later = {}
    while batches:
        batch, set_aside_steps = batches.popleft()
        done = Released()
        ended: list[str] = []
        with _transaction(where):
            if MONITOR in batch:
                done, ended = _feed(where, sorted(batch[MONITOR]))
            else:
                done = release_in_transaction(where, batch)
        total.add(done)
        batches.extend(_batches(done.later))
        if ended:
            with _transaction(where):
                total.ready += _end_monitors(where, sorted(ended))
        if done.has_controls and set_aside_steps:
            with _transaction(where):
                if task_gate.set_aside_held(where, batch):
                    batches.append((batch, set_aside_steps - 1))
    return total


@contextmanager
def _transaction(where: Where) -> Iterator[None]:
    """Open a gate_transaction(). Without a lock it is undone and left to the sweep."""
    try:
        with gate_transaction(where):
            yield
    except (psycopg.Error, DatabaseError) as error:
        if not queries.is_lock_lost(error):
            raise
        logger.info("releasing held jobs failed, maintenance will retry: %s", error)


def _batches(keys: Keys, set_aside_steps: int = 5) -> Iterator[tuple[Keys, int]]:
    """Cut gates into batches, one for each transaction. Monitors come first, by themselves.

    Each comes with how many times jobs of paused and full tasks are moved out of its lines.
    """
    monitors = sorted(keys.get(MONITOR, ()))
    for at in range(0, len(monitors), SMALL_BATCH):
        yield {MONITOR: set(monitors[at : at + SMALL_BATCH])}, set_aside_steps
    # the last kind, tasks, needs no lock of its own: see release_task.sql
    pairs = ((kind, key) for kind in ORDER[1:-1] for key in sorted(keys.get(kind, ())))
    while chosen := list(islice(pairs, SMALL_BATCH)):
        batch: Keys = {}
        add_gates(batch, chosen)
        yield batch, set_aside_steps


def release_in_transaction(where: Where, keys: Keys) -> Released:
    """Release jobs at sessions, users and exclusive keys, and at all their later gates.

    `where` must be in a READ COMMITTED transaction. Raises the error of a lock that timed out,
    Django's on an alias.
    """
    user_slots = get_settings().default_user_slots
    wanted: Keys = {kind: set(keys.get(kind, ())) for kind in (SESSION, LIMIT_USER, EXCLUSIVE)}
    done = Released()
    for kind in wanted:
        if not wanted[kind]:
            continue
        chosen = sorted(wanted[kind])
        done.has_controls |= queries.lock_gates(where, kind, chosen)
        if kind == EXCLUSIVE:
            _reject(where, chosen)
        moved = queries.release_gates(where, kind, chosen, user_slots=user_slots)
        for job in moved:
            if job.passes and job.state == "ready":
                done.note(job.job_id, (job.lane, job.queue_id, job.priority))
            # a job that passed has come to its next gate, one taken back leaves its later ones
            for other, key in job.gates():
                if other in wanted:
                    wanted[other].add(key)
                elif kind == SESSION:  # the anchor of a monitor has the turn, or has lost it
                    add_gates(done.later, [(MONITOR, key)])
        if kind == EXCLUSIVE and any(job.passes for job in moved):
            _reject(where, chosen)
    return done


def _reject(where: Where, keys: Sequence[str]) -> None:
    """Cancel jobs that must not wait before these exclusive keys, where another has passed."""
    if found := [job_id for (job_id,) in fetch(where, "find_rejected", {"keys": list(keys)})]:
        reason = "another job with its key was under way (while_executing_reject)"
        error = json.dumps(stored_error(DuplicateJob, reason))
        cancel_waiting(where, found, error=error)


def _feed(where: Where, keys: Sequence[str]) -> tuple[Released, list[str]]:
    """Feed monitors or take details back; name those that may have no details left."""
    by_tenant = get_settings().priority_scope == "tenant"
    has_controls = queries.lock_gates(where, MONITOR, keys)
    done, ended = monitor_queries.release_monitors(where, keys, by_tenant=by_tenant)
    done.has_controls = has_controls
    return done, ended


def _end_monitors(where: Where, keys: Sequence[str]) -> int:
    """End those of these monitors that have no details left; return how many."""
    queries.lock_gates(where, MONITOR, keys)
    return monitor_queries.end_monitors(where, monitor_queries.lock_additions(where, keys))


def release_and_wake(using: str, keys: Keys) -> int:
    """Release jobs at these gates and wake workers for them; return how many became ready."""
    ready = release(using, keys).ready
    _wake(using, ready)
    return ready


def _wake(using: str, ready: int) -> None:
    if ready and get_settings().notify:
        enqueue_queries.wake_any_workers(using, most=ready)


class _AfterCommit:
    """Wakes workers and releases gates for jobs once the transaction that changed them commits.

    `filled`: how many jobs have become ready, by tenant and queue. `ready`: how many others.
    """

    __slots__ = ("filled", "keys", "ready", "savepoints", "using")

    def __init__(self, using: str) -> None:
        self.using = using
        self.savepoints = set(connections[using].savepoint_ids)
        """Open savepoints: a rollback to one of them drops the hook."""
        self.filled: dict[tuple[str, str], int] = {}
        self.keys: Keys = {}
        self.ready = 0

    def send(self) -> None:
        """Do it: the hook. (A method, since Django names a hook that fails.)"""
        if self.filled:
            enqueue_queries.wake_workers(self.using, self.filled)
        _wake(self.using, self.ready)
        if self.keys:
            release_and_wake(self.using, self.keys)


def _last_hook(using: str) -> _AfterCommit | None:
    """Return the last hook of the open transaction, if it is one of these and may be added to."""
    wrapper = connections[using]
    hooks = wrapper.run_on_commit if wrapper.in_atomic_block else []
    last = getattr(hooks[-1][1], "__self__", None) if hooks else None
    if isinstance(last, _AfterCommit) and last.savepoints == set(wrapper.savepoint_ids):
        return last
    return None


def release_later(using: str, jobs: Collection[JobGates], *, ready: int = 0) -> None:
    """Release the gates of jobs, and wake workers for `ready` others, after the commit.

    All of a transaction share one hook.
    """
    if not jobs and not ready:
        return
    last = _last_hook(using)
    hook = last or _AfterCommit(using)
    for gates in jobs:
        add_gates(hook.keys, gates.keys().items())
    hook.ready += ready
    if last is None:
        transaction.on_commit(hook.send, using=using, robust=True)


def wake_later(using: str, tenant: str, queue: str, count: int) -> None:
    """Wake workers for `count` new jobs after the commit, with the same hook."""
    if not get_settings().notify:
        return
    last = _last_hook(using)
    hook = last or _AfterCommit(using)
    hook.filled[tenant, queue] = hook.filled.get((tenant, queue), 0) + count
    if last is None:
        transaction.on_commit(hook.send, using=using, robust=True)


def follow_later(where: Where, follow_ups: Iterable[FollowUp]) -> None:
    """Release the jobs that the ends of others enqueued, and wake workers, after the commit.

    On a worker's own connection they are left to the sweep and to the next claims.
    """
    if isinstance(where, str):
        for job in follow_ups:
            release_later(where, [job.gates], ready=not job.waits)


def cancel_waiting(where: Where, ids: Sequence[int], *, error: str | None = None) -> Changed:
    """Cancel those of these jobs that wait; return them with their gates, which stay closed.

    `error`: the reason, as `errors` has it.
    """
    cancelled, follow_ups = control_queries.cancel_waiting_jobs(where, ids, error=error)
    follow_later(where, follow_ups)
    return cancelled


@dataclass(slots=True)
class Sweep:
    """Finds gates with room and held jobs, a bounded number in each step."""

    most: int = 2000
    """Gates of a kind that one step reads."""
    after: dict[str, str] = field(default_factory=dict)

    def step(self, using: str, look: Where | None = None) -> int:
        """Release the next gates of each kind; return how many jobs became ready.

        `look` is a connection for reads that keeps its plans. None: read on `using`.
        """
        look = look or using
        slots = get_settings().default_user_slots
        keys: Keys = {}
        for kind in (SESSION, LIMIT_USER, EXCLUSIVE):
            after = self.after.get(kind, "")
            keys[kind], self.after[kind] = queries.find_open(
                look, kind, after=after, most=self.most, user_slots=slots
            )
        swept = task_gate.sweep(using, look)
        for kind, found in swept.later.items():
            keys.setdefault(kind, set()).update(found)
        ready = swept.ready + release(using, keys).ready
        _wake(using, ready)
        return ready


def let_tasks_through(using: str, names: Collection[str]) -> None:
    """Release a first batch of jobs of these tasks, whatever holds them now.

    Workers are woken at once: jobs that no worker has set aside yet are ready.
    """
    done = task_gate.let_through(using, names)
    _wake(using, max(1, done.ready + release(using, done.later).ready))
