"""Worker processes that have died: the list of changes keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.dateparse import parse_datetime

from ..models import Change, Worker
from .changes import changes_of
from .display_limits import PAGE


@dataclass(frozen=True, slots=True)
class Death:
    """A worker process that died, and why. `id`: of its entry in the list of changes.

    `jobs`: the ids of the jobs that it held, the first of them.
    """

    id: int
    worker_id: int
    name: str
    host: str
    cause: str
    at: datetime
    version: str
    started_at: datetime | None
    jobs: Sequence[int]


def list_deaths(using: str, since: datetime) -> list[Death]:
    """Return the newest workers that died after a moment, up to PAGE."""
    entries = Change.objects.using(using).filter(action=Change.Action.DIE).order_by("-pk")[:PAGE]
    return [death for death in _deaths(entries) if death.at >= since]


def death_of(using: str, worker_id: int) -> Death | None:
    """Return how a worker died; None where it did not, or where no entry is kept."""
    entries = changes_of(using, Worker(pk=worker_id), most=PAGE)
    return next(iter(_deaths([e for e in entries if e.action == Change.Action.DIE])), None)


def _deaths(entries: Iterable[Change]) -> list[Death]:
    return [
        Death(
            entry.pk,
            entry.object_ids[0],
            entry.object_label,
            str(entry.after.get("host", "")),
            str(entry.after.get("cause", "")),
            entry.made_at,
            str(entry.after.get("version", "")),
            parse_datetime(str(entry.after.get("started_at", ""))),
            [pk for pk in entry.after.get("jobs", ()) if isinstance(pk, int)],
        )
        for entry in entries
    ]
