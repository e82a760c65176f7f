"""Statements that find the jobs of a user or of a model instance, in all leaves at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from .base import statement
from .lists import NEWEST, Found, read_in_order


@dataclass(frozen=True, slots=True)
class JobOfSource:
    """One job of a model instance; `source_id` is the primary key of the instance as text."""

    id: int
    source_id: str
    name: str
    state: str
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def list_jobs_of_sources(
    using: str, types: Sequence[str], ids: Sequence[str], *, most: int, before: int = NEWEST
) -> list[JobOfSource]:
    """Return the newest `most` jobs below `before` of each of some instances, the newest first."""
    params: dict[str, Any] = {
        "types": list(types),
        "ids": list(ids),
        "most": most,
        "before": before,
    }
    with read_in_order(using), connections[using].cursor() as cursor:
        cursor.execute(statement("list_jobs_of_sources").decode(), params)
        return [JobOfSource(*row) for row in cursor.fetchall()]


def list_jobs_of_user(
    using: str,
    created_by: str,
    *,
    page: int,
    most: int,
    before: int = NEWEST,
    queues: Sequence[int] | None = None,
) -> Found:
    """Return ids of jobs that one user has created, at most `page` of the newest `most`."""
    params: dict[str, Any] = {
        "created_by": created_by,
        "page": page,
        "most": most,
        "before": before,
        "queues": None if queues is None else list(queues),
        "states": None,
        "name": None,
    }
    with read_in_order(using), connections[using].cursor() as cursor:
        cursor.execute(statement("list_jobs_of_user").decode(), params)
        rows = cursor.fetchall()
    return Found([row[2] for row in rows if row[2] is not None], rows[0][0])
