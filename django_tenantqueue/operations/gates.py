"""Let jobs through their gates: monitors, sessions, caps of users, exclusive keys.

A job with gates is `held` and stands in the line of the first one it has not passed. A release
lets through as many as a gate allows; it follows the commit of whatever makes room, and takes locks
of its own only. What a crash or a lock kept from its release is found by a sweep within about a
second.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import psycopg
from django.db import DatabaseError

from ..conf import Settings, get_settings
from ..gates import EXCLUSIVE, MONITOR, ORDER, SESSION, TASK, USER, JobGates
from ..queries import enqueue as enqueue_queries
from ..queries import gates as queries
from ..queries.gates import Keys, Released
from ..queries.monitors import release_monitors
from . import gate_cascade, task_gate
from .after_commit import last_hook, open_savepoints, register

logger = logging.getLogger("django_tenantqueue")

BATCH = 100
"""Gates that one transaction locks at most."""
SET_ASIDE_TIMES = 5
"""Batches of jobs of paused and full tasks that a release moves out of the line of a gate; more are
left to the next one."""
SWEEP_GATES = 2000
"""Gates of a kind that one step of the sweep looks at."""


def keys_of(jobs: Iterable[JobGates]) -> Keys:
    """Return the keys of all gates of these jobs."""
    keys: Keys = {}
    for gates in jobs:
        for kind, key in gates.keys().items():
            keys.setdefault(kind, set()).add(key)
    return keys


def release(where: str | psycopg.Connection[Any], keys: Keys) -> Released:
    """Let jobs through these gates; return how many became ready, and where.

    A gate that somebody else is releasing for more than 50 ms is left to the sweep.
    """
    settings = get_settings()
    total = task_gate.release_tasks(where, keys.get(TASK, ()))
    batches = deque((batch, SET_ASIDE_TIMES) for batch in (*_batches(keys), *_batches(total.later)))
    total.later = {}
    while batches:
        batch, times = batches.popleft()
        try:
            done = _release_batch(where, batch, settings)
            total.add(done)
            batches.extend((later, SET_ASIDE_TIMES) for later in _batches(done.later))
            if done.has_controls and times and task_gate.set_aside_held(where, batch):
                batches.append((batch, times - 1))
        except (psycopg.Error, DatabaseError) as error:
            if not queries.is_lock_lost(error):
                raise
            logger.info("jobs are let through later: %s", error)
    return total


def _release_batch(
    where: str | psycopg.Connection[Any], keys: Keys, settings: Settings
) -> Released:
    if MONITOR in keys:
        by_tenant = settings.priority_scope == "tenant"
        return release_monitors(where, sorted(keys[MONITOR]), by_tenant=by_tenant)
    return gate_cascade.release(where, keys, user_slots=settings.default_user_slots)


def _batches(keys: Keys) -> Iterator[Keys]:
    """Cut gates into what one transaction locks; monitors, which come first, by themselves."""
    monitors = sorted(keys.get(MONITOR, ()))
    for at in range(0, len(monitors), BATCH):
        yield {MONITOR: set(monitors[at : at + BATCH])}
    # the last kind, tasks, needs no lock of its own: see release_task.sql
    pairs = ((kind, key) for kind in ORDER[1:-1] for key in sorted(keys.get(kind, ())))
    while chosen := list(islice(pairs, BATCH)):
        batch: Keys = {}
        for kind, key in chosen:
            batch.setdefault(kind, set()).add(key)
        yield batch


def release_and_wake(using: str, keys: Keys) -> int:
    """Let jobs through these gates and wake workers for them; return how many became ready."""
    ready = release(using, keys).ready
    if ready and get_settings().notify:
        enqueue_queries.wake_any_workers(using, most=ready)
    return ready


class _Release:
    """Releases the gates of new jobs once the transaction that enqueued them has committed."""

    __slots__ = ("keys", "savepoints", "using")

    def __init__(self, using: str) -> None:
        self.using = using
        self.savepoints = open_savepoints(using)
        self.keys: Keys = {}

    def send(self) -> None:
        """Release them: the hook."""
        release_and_wake(self.using, self.keys)


def release_later(using: str, gates: JobGates) -> None:
    """Release the gates of a job after the commit; many jobs of a transaction share one hook."""
    last = last_hook(_Release, using)
    hook = last or _Release(using)
    for kind, key in gates.keys().items():
        hook.keys.setdefault(kind, set()).add(key)
    if last is None:
        register(hook, using)


@dataclass(slots=True)
class Sweep:
    """Finds gates that could let jobs through and have not, a bounded number in each step."""

    after: dict[str, str] = field(default_factory=dict)

    def step(self, using: str, look: queries.Where | None = None) -> int:
        """Look at the next gates of each kind, release them; return how many jobs became ready.

        `look` is a connection to look on that keeps its plans; None: as all else, on `using`.
        """
        look = look or using
        slots = get_settings().default_user_slots
        keys: Keys = {}
        for kind in (SESSION, USER, EXCLUSIVE):
            found = queries.find_open(
                look,
                kind,
                after=self.after.get(kind, ""),
                most=SWEEP_GATES,
                user_slots=slots,
            )
            keys[kind] = found.keys
            self.after[kind] = found.after or ""
        swept = task_gate.sweep(using, look)
        for kind, found_keys in swept.later.items():
            keys.setdefault(kind, set()).update(found_keys)
        return swept.ready + release_and_wake(using, keys)


def let_tasks_through(using: str, names: Collection[str]) -> int:
    """Let a first batch of jobs of these tasks go, whatever holds them now; return how many.

    Workers look at once: jobs that no worker has set aside yet are ready.
    """
    done = task_gate.let_through(using, names)
    ready = done.ready + release(using, done.later).ready
    if get_settings().notify:
        enqueue_queries.wake_any_workers(using, most=max(1, ready))
    return ready
