"""Schedules that run late or fail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from ..models import Schedule
from .amounts import LATE_SECONDS, PAGE

LATE = timedelta(seconds=LATE_SECONDS)


@dataclass(frozen=True, slots=True)
class ScheduleTroubles:
    """The names of late and failing schedules, each up to PAGE."""

    late: Sequence[str]
    failing: Sequence[str]


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
    late = late_schedules(rows).order_by("next_at")[:PAGE]
    failing = failing_schedules(rows).order_by("last_error_at")[:PAGE]
    return ScheduleTroubles([str(row) for row in late], [str(row) for row in failing])
