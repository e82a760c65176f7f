"""Schedules that run late or fail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from ..models import Schedule

LATE = timedelta(minutes=1)
"""A schedule is late when it is due for longer. Halved: a change of the leader is reported, too.
Doubled: a fleet without maintenance is reported later."""
NAMED = 5
"""Schedules that a problem names."""


@dataclass(frozen=True, slots=True)
class ScheduleTroubles:
    """The names of late and failing schedules, each up to NAMED and one more."""

    late: Sequence[str]
    failing: Sequence[str]

    def texts(self) -> list[str]:
        """Return what is wrong, as the problems of the fleet say it."""
        return [
            f"{what}: {_listed(names)}"
            for what, names in (
                ("late schedules", self.late),
                ("failing schedules", self.failing),
            )
            if names
        ]


def late_schedules(rows: QuerySet[Schedule]) -> QuerySet[Schedule]:
    """Return those that should have run over a minute ago."""
    return rows.filter(enabled=True, next_at__isnull=False, next_at__lt=timezone.now() - LATE)


def failing_schedules(rows: QuerySet[Schedule]) -> QuerySet[Schedule]:
    """Return the enabled ones that failed at their last tick."""
    return rows.filter(failures__gt=0, enabled=True)


def read_troubles(using: str, tenants: Collection[str] | None = None) -> ScheduleTroubles:
    """Return the schedules that are late or failing: two bounded reads by their indexes.

    `tenants`: only those of these tenants; None: all.
    """
    rows = Schedule.objects.using(using)
    if tenants is not None:
        rows = rows.filter(tenant__in=sorted(tenants), all_tenants=False)
    late = late_schedules(rows).order_by("next_at")[: NAMED + 1]
    failing = failing_schedules(rows).order_by("last_error_at")[: NAMED + 1]
    return ScheduleTroubles([str(row) for row in late], [str(row) for row in failing])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (" and more" if len(names) > NAMED else "")
