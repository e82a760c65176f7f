"""Statements for clients of Fireworq: lists of one queue, page by page, and the count of pushes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ...queries.base import array, execute, fetch
from ...queries.lists import fetch_in_order

Statement = Literal[
    "list_ready_of_queue",
    "list_first_ready_of_queue",
    "list_deferred_of_queue",
    "list_first_deferred_of_queue",
    "list_claimed_of_queue",
    "list_first_claimed_of_queue",
    "list_failed_of_queue",
    "list_failed_by_push",
]


@dataclass(frozen=True, slots=True)
class ListedJob:
    """What clients of Fireworq see of a job.

    `args` and `error` are JSON texts. `error` is class, message and answer of the last error.
    """

    id: int
    name: str
    source_method: str
    args: str
    state: str
    created_at: datetime
    run_at: datetime
    queued_at: datetime | None
    finished_at: datetime | None
    attempt: int
    max_attempts: int
    error: str


def list_of_queue(
    using: str, name: Statement, queue_id: int, *, at: datetime, job_id: int, most: int
) -> list[ListedJob]:
    """Return jobs of a queue behind a job's time and id, in the order of the statement.

    The lists of ready jobs and by push have the order of ids, and do not look at `at`.
    """
    params = {
        "queue_id": queue_id,
        "queues": array([queue_id]),
        "at": at,
        "id": job_id,
        "most": most,
    }
    return [ListedJob(*row) for row in fetch_in_order(using, name, params)]


def find_of_queue(using: str, queue_id: int, job_id: int, *, failed: bool) -> ListedJob | None:
    """Return a job of a queue: an unfinished one, or one that ended in error; None: no such job."""
    name = "find_failed_of_queue" if failed else "find_job_of_queue"
    rows = fetch(using, name, {"queue_id": queue_id, "id": job_id})
    return ListedJob(*rows[0]) if rows else None


def count_push(using: str, queue_id: int) -> None:
    """Count a job that was pushed into a queue."""
    execute(using, "count_push", {"queue_id": queue_id})
