"""Statements for the changes of operators and the duties of maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..gates import JobGates
from .base import Where, array, fetch
from .follow_ups import FollowUp, read_follow_ups
from .lists import fetch_in_order


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """Running and waiting jobs of a queue, each counted up to a limit.

    `wait_seconds`: how long the first ready job has waited; None when no job is ready.
    """

    queue_id: int
    running: int
    waiting: int
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class DutyRun:
    """What a maintenance duty did. `outcome`: None when it found nothing to do."""

    name: str
    worker: str
    duration_seconds: float
    outcome: str | None
    runs: int
    error: str


def record_duty(using: str, run: DutyRun) -> None:
    """Keep what a maintenance duty did last."""
    fetch(using, "record_duty", {name: getattr(run, name) for name in DutyRun.__slots__})


Changed = dict[int, JobGates]
"""Jobs that were changed, by id, with the gates that they pass."""


def cancel_waiting_jobs(
    where: Where, ids: Sequence[int], *, error: str | None = None
) -> tuple[Changed, list[FollowUp]]:
    """Cancel those of `ids` that wait; return them, and the jobs that their ends enqueued.

    `error`: the reason, as `errors` has it.
    """
    rows = fetch(where, "cancel_waiting_jobs", {"ids": array(ids), "error": error})
    cancelled = {job_id: JobGates.read(gates) for job_id, gates, _ in rows}
    return cancelled, read_follow_ups(row[2] for row in rows)


@dataclass(frozen=True, slots=True)
class JobEdit:
    """What a statement has changed in one job.

    `was` is the value of the column before, `now` after, if the caller does not know it.
    """

    gates: JobGates
    was: Any
    now: Any = None


Edits = dict[int, JobEdit]
"""Jobs with a changed column, by id."""


def _edits(where: Where, name: str, ids: Sequence[int], **params: object) -> Edits:
    rows = fetch(where, name, {"ids": array(ids), **params})
    return {job_id: JobEdit(JobGates.read(gates), *values) for job_id, gates, *values in rows}


def request_cancel(using: str, ids: Sequence[int]) -> dict[int, bool]:
    """Ask the workers to cancel those of `ids` that hold a slot; return whether that is new."""
    return dict(fetch(using, "request_cancel", {"ids": array(ids)}))


def retry_jobs(using: str, ids: Sequence[int], *, by_tenant: bool) -> Edits:
    """Make those of `ids` ready again that ended in error or were cancelled; return their states.

    `by_tenant`: PRIORITY_SCOPE is "tenant", so that all go into the same lane.
    """
    return _edits(using, "retry_jobs", ids, by_tenant=by_tenant)


def delete_jobs(using: str, ids: Sequence[int]) -> dict[int, str]:
    """Delete those of `ids` that are finished and of no monitor; return their states."""
    return dict(fetch(using, "delete_jobs", {"ids": array(ids)}))


def set_priority(using: str, ids: Sequence[int], priority: int, lane: int) -> Edits:
    """Change the priority of those of `ids` that wait; return the former ones."""
    return _edits(using, "set_priority", ids, priority=priority, lane=lane)


def set_run_at(using: str, ids: Sequence[int], run_at: datetime | None) -> Edits:
    """Change the time of those of `ids` that wait; return the former times.

    None: now, and only of those that wait for their time.
    """
    return _edits(using, "set_run_at", ids, run_at=run_at)


def set_queue(using: str, ids: Sequence[int], queue_id: int) -> dict[int, int]:
    """Move those of `ids` that wait to another queue; return the ids of the former queues."""
    return dict(fetch(using, "set_queue", {"ids": array(ids), "queue_id": queue_id}))


def promote_jobs(using: str, *, most: int, now: datetime | None = None) -> Changed:
    """Make up to `most` due jobs ready, or bring them before their gates; return them.

    `now` is the database's clock if None.
    """
    rows = fetch(using, "promote_jobs", {"most": most, "now": now})
    return {job_id: JobGates.read(gates) for job_id, gates in rows}


def find_expired(where: Where, *, most: int) -> list[int]:
    """Return the ids of up to `most` waiting jobs that have expired."""
    return [row[0] for row in fetch(where, "find_expired", {"most": most})]


def next_due(where: Where) -> float | None:
    """Seconds until the next scheduled job is due; None: there is none."""
    seconds: float | None = fetch(where, "next_due", {})[0][0]
    return seconds


def relane_jobs(using: str, *, by_tenant: bool, most: int) -> list[int]:
    """Give up to `most` waiting jobs the lane of the current PRIORITY_SCOPE; return them."""
    return [row[0] for row in fetch(using, "relane_jobs", {"by_tenant": by_tenant, "most": most})]


def count_queues(using: str, ids: Sequence[int], *, running: int, waiting: int) -> list[QueueLoad]:
    """Count up to `running` and `waiting` jobs of each of the queues `ids`.

    Read by indexes whatever the statistics say: they may stem from a moment without jobs.
    """
    params = {"ids": array(ids), "running": running, "waiting": waiting}
    rows = fetch_in_order(using, "count_queues", params)
    return [QueueLoad(*row) for row in rows]
