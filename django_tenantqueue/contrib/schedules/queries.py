"""Statements about schedules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.core.serializers.json import DjangoJSONEncoder

from ...queries.base import Where, execute, fetch
from ...queries.lists import fetch_in_order


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule that is due and locked. `is_running`: its last job has not ended."""

    id: int
    now: datetime
    is_running: bool


@dataclass(frozen=True, slots=True)
class ScheduleMove:
    """What has become of a tick, and when the schedule is due next. None: as it was."""

    id: int
    tick_at: datetime | None
    next_at: datetime | None
    after_tenant: str | None = None
    last_at: datetime | None = None
    last_tick_at: datetime | None = None
    last_job_id: int | None = None
    lateness_seconds: float | None = None
    last_error: str = ""
    last_error_at: datetime | None = None
    failures: int = 0


def lock_due_schedules(using: str, *, most: int, now: datetime | None = None) -> list[DueSchedule]:
    """Lock up to `most` due schedules; `now` is the database's clock if None."""
    rows = fetch_in_order(using, "lock_due_schedules", {"most": most, "now": now})
    return [DueSchedule(*row) for row in rows]


def move_schedules(using: str, moves: Sequence[ScheduleMove]) -> None:
    """Write what has become of ticks."""
    text = json.dumps([asdict(move) for move in moves], cls=_Encoder)
    execute(using, "move_schedules", {"moves": text})


class _Encoder(DjangoJSONEncoder):
    """Keeps microseconds, which Django's encoder cuts off."""

    def default(self, o: object) -> object:
        return o.isoformat() if isinstance(o, datetime) else super().default(o)


def next_schedule(where: Where) -> float | None:
    """Seconds until the next schedule is due; None: there is none."""
    seconds: float | None = fetch(where, "next_schedule", {})[0][0]
    return seconds
