"""The statement that finds the jobs of model instances, in all leaves at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .lists import NEWEST, read_planned


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
    params = {"types": list(types), "ids": list(ids), "most": most, "before": before}
    return [JobOfSource(*row) for row in read_planned(using, "list_jobs_of_sources", params)]
