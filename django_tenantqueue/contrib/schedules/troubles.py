"""Schedules that run late or fail, and what is said of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import (
    Case,
    DurationField,
    ExpressionWrapper,
    F,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.lookups import LessThan
from django.utils import timezone
from django.utils.translation import gettext

from ...features import Problem
from ...status.amounts import LATE_SECONDS, PAGE
from ...status.problems import listing
from .models import Schedule

LATE = timedelta(seconds=LATE_SECONDS)


@dataclass(frozen=True, slots=True)
class ScheduleTroubles:
    """The names of late and failing schedules, each up to PAGE."""

    late: Sequence[str]
    failing: Sequence[str]


def due_at(row: Schedule) -> datetime | None:
    """Return when a schedule should run, or should have run; see late_schedules()."""
    if row.failures and row.tick_at is not None:
        return row.tick_at + timedelta(seconds=row.jitter_seconds)
    return row.next_at


def late_schedules(rows: QuerySet[Schedule], by: timedelta = LATE) -> QuerySet[Schedule]:
    """Return those that should have run longer ago, the latest ones first.

    A failure puts off the next try, but not the tick.
    """
    jitter = ExpressionWrapper(
        F("jitter_seconds") * Value(timedelta(seconds=1)), output_field=DurationField()
    )
    due = Case(When(failures__gt=0, then=F("tick_at") + jitter), default=F("next_at"))
    before = timezone.now() - by
    # not redundant: rows that may be late are found by their indexes
    may_be_late = Q(next_at__lt=before) | Q(failures__gt=0)
    late = rows.filter(may_be_late, LessThan(due, before), enabled=True, next_at__isnull=False)
    return late.order_by(due)


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
    late = late_schedules(rows)[:PAGE]
    failing = failing_schedules(rows).order_by("last_error_at")[:PAGE]
    return ScheduleTroubles([str(row) for row in late], [str(row) for row in failing])


def problems_of_schedules(troubles: ScheduleTroubles) -> list[Problem]:
    """Return that schedules are late or failed at their last tick."""
    late, failing = gettext("late schedules: %(names)s"), gettext("failing schedules: %(names)s")
    return [
        *listing(late, "names", troubles.late, "schedules", narrowed="trouble=late"),
        *listing(failing, "names", troubles.failing, "schedules", narrowed="trouble=failing"),
    ]
