"""Statements for the changes of operators and the duties of maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..gate_keys import JobGates
from ..states import State
from .base import Where, array, fetch
from .follow_ups import FollowUp, read_follow_ups
from .lists import fetch_in_order
from .session_halt import HALTING


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
    """Store the last run of a maintenance duty."""
    fetch(using, "record_duty", {name: getattr(run, name) for name in DutyRun.__slots__})


Changed = dict[int, JobGates]
"""Jobs that were changed, by id, with the gates that they pass."""


def cancel_waiting_jobs(
    where: Where, ids: Sequence[int], *, error: str | None = None
) -> tuple[Changed, list[FollowUp]]:
    """Cancel those of `ids` that wait; return them, and the jobs that their ends enqueued.

    `error`: the reason, as `errors` has it.
    """
    params = {"ids": array(ids), "error": error, "halts": State.CANCELLED in HALTING}
    rows = fetch(where, "cancel_waiting_jobs", params)
    cancelled = {job_id: JobGates.read(gates) for job_id, _, gates in rows}
    return cancelled, read_follow_ups(row[1] for row in rows)


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


def edit_jobs(where: Where, statement: str, ids: Sequence[int], **params: object) -> Edits:
    """Run a statement that changes a column of jobs: retry_jobs, set_priority or set_run_at."""
    rows = fetch(where, statement, {"ids": array(ids), **params})
    return {job_id: JobEdit(JobGates.read(gates), *values) for job_id, gates, *values in rows}


def request_cancel(using: str, ids: Sequence[int]) -> dict[int, bool]:
    """Ask the workers to cancel those of `ids` that hold a slot; return whether that is new."""
    return dict(fetch(using, "request_cancel", {"ids": array(ids)}))


def promote_jobs(using: str, *, most: int, now: datetime | None = None) -> Changed:
    """Make up to `most` due jobs ready, or bring them before their gates; return them.

    `now` is the database's clock if None.
    """
    rows = fetch(using, "promote_jobs", {"most": most, "now": now})
    return {job_id: JobGates.read(gates) for job_id, gates in rows}


def find_expired(where: Where, *, most: int) -> list[int]:
    """Return the ids of up to `most` waiting jobs that have expired."""
    return [row[0] for row in fetch(where, "find_expired", {"most": most})]


def count_queues(using: str, ids: Sequence[int], *, running: int, waiting: int) -> list[QueueLoad]:
    """Count up to `running` and `waiting` jobs of each of the queues `ids`.

    Read by indexes whatever the statistics say: they may stem from a moment without jobs.
    """
    params = {"ids": array(ids), "running": running, "waiting": waiting}
    rows = fetch_in_order(using, "count_queues", params)
    return [QueueLoad(*row) for row in rows]
