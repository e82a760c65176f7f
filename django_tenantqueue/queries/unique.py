"""Statements for the keys of unique jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from .base import Where, array, execute
from .direct import fetch_prepared, send
from .enqueue import GatedJob


class UniqueJob(GatedJob):
    """New jobs that take a key each. `args` and `keys` have an element for each job."""

    keys: list[str]
    ttl: float | None
    excludes: bool
    """One job of a key runs at a time: the key is its exclusive key, too."""
    passed_over: str
    """Jobs whose hold on their keys does not count (an array literal)."""


class Placed(NamedTuple):
    """What became of one of them: a new job, or the one that has its key."""

    id: int
    state: str | None
    """None: it has ended."""
    is_new: bool
    ends_at_start: bool
    """Not new, and it has the key only until it starts."""


def insert_unique_jobs(wrapper: BaseDatabaseWrapper, job: UniqueJob) -> dict[int, Placed]:
    """Insert a job for each element of `args` whose key is free; return all by their places.

    A job is missing when another session took its key between two looks, or its queue is retired
    or not visible.
    """
    rows = fetch_prepared(wrapper, "insert_unique_jobs", job)
    return {
        int(nth) - 1: Placed(int(job_id), state, is_new in (True, "t"), at_start in (True, "t"))
        for nth, job_id, state, is_new, at_start in rows
    }


def lock_existing_jobs(
    wrapper: BaseDatabaseWrapper, ids: Sequence[int], *, patience_seconds: float
) -> set[int]:
    """Keep waiting jobs from starting before the commit; return those that could be locked.

    `ids` in ascending order.
    """
    params = {"ids": json.dumps(list(ids)), "patience_seconds": patience_seconds}
    return {int(row[0]) for row in fetch_prepared(wrapper, "lock_existing_jobs", params)}


def keep_existing_jobs(
    wrapper: BaseDatabaseWrapper, ids: set[int], *, patience_seconds: float
) -> bool:
    """Do lock_existing_jobs() for all or none, in a transaction; return whether they are locked.

    PostgreSQL may lock a row and then find that it is no longer what was looked for: without the
    savepoint, such a lock would last until the commit, and the end of that job wait for it.
    """
    send(wrapper, b"SAVEPOINT tenantqueue_existing_jobs")
    kept = lock_existing_jobs(wrapper, sorted(ids), patience_seconds=patience_seconds) == ids
    if not kept:
        send(wrapper, b"ROLLBACK TO SAVEPOINT tenantqueue_existing_jobs")
    send(wrapper, b"RELEASE SAVEPOINT tenantqueue_existing_jobs")
    return kept


def free_keys(where: Where, held: Sequence[tuple[str, int]]) -> None:
    """Let go of the keys (key, job id) of jobs that have ended."""
    params = {"keys": [key for key, _ in held], "ids": array(job_id for _, job_id in held)}
    execute(where, "free_keys", params)
