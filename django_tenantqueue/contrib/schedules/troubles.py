"""Schedules that run late or fail, and what is said of them."""

from __future__ import annotations

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
from django.utils.translation import gettext_lazy as _

from ...features import Condition, Severity
from ...status.amounts import LATE_SECONDS, PAGE
from ...status.conditions import Look, names
from .models import Schedule

LATE = timedelta(seconds=LATE_SECONDS)


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


def _rows(look: Look) -> QuerySet[Schedule]:
    rows = Schedule.objects.using(look.using)
    if look.tenants is None:
        return rows
    return rows.filter(tenant__in=sorted(look.tenants), all_tenants=False)


CONDITIONS = (
    Condition(
        "schedule_late",
        Severity.PEOPLE,
        title=_("late schedule"),
        fleet=_("late schedules: %(names)s"),
        where="schedules",
        filter="trouble=late",
        find=lambda look: names(str(row) for row in late_schedules(_rows(look))[:PAGE]),
        of_tenants=True,
    ),
    Condition(
        "schedule_failing",
        Severity.PEOPLE,
        title=_("failing schedule"),
        fleet=_("failing schedules: %(names)s"),
        where="schedules",
        filter="trouble=failing",
        find=lambda look: names(
            str(row) for row in failing_schedules(_rows(look)).order_by("last_error_at")[:PAGE]
        ),
        of_tenants=True,
    ),
)
