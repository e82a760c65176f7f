"""Statements that find the jobs of one task that failed with errors of one class."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .lists import NEWEST, fetch_in_order


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that ended in error."""

    id: int
    finished_at: datetime
    queue_id: int


@dataclass(frozen=True, slots=True)
class JobToRetry:
    """A job that waits after a failure."""

    id: int
    queue_id: int


def list_failed_jobs(
    using: str, task: str, error: str, *, since: datetime, before: FailedJob | None, most: int
) -> list[FailedJob]:
    """Return jobs that ended in error since `since`, the newest first, at most `most`.

    `before`: the last job of the previous step; None: begin with the newest. `task` and `error`
    are as figures have them (see LONGEST).
    """
    params = {
        "task": task,
        "error": error,
        "since": since,
        "before": "infinity" if before is None else before.finished_at,
        "before_id": NEWEST if before is None else before.id,
        "most": most,
    }
    return [FailedJob(*row) for row in fetch_in_order(using, "list_failed_jobs", params)]


def list_jobs_to_retry(
    using: str, task: str, error: str, *, before: int = NEWEST, most: int
) -> list[JobToRetry]:
    """Return jobs that wait after such a failure, below the id `before`, the newest first."""
    params = {"task": task, "error": error, "before": before, "most": most}
    return [JobToRetry(*row) for row in fetch_in_order(using, "list_jobs_to_retry", params)]
