"""Schedules that run late or fail, and what is said of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ...features import Condition, Scope, Severity, Sighting, Watch
from ...status.amounts import COUNTED_TO, LATE_SECONDS, LINE, PAGE
from ...status.conditions import Look, names
from ...status.figures import rough_text
from ...text import clean_text
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


def _watch_late(look: Look, rule: Scope, known: Collection[str]) -> Iterator[Sighting]:
    by = max(LATE, timedelta(seconds=rule.least))
    for row in _in_scope(rule, late_schedules(Schedule.objects.using(look.using), by), known):
        due = due_at(row)
        assert due is not None
        late = rough_text((look.now - due).total_seconds())
        text = gettext("It is late by %s.") % late
        yield Sighting(str(row.pk), str(row), text, row.tenant)


def _watch_failing(look: Look, rule: Scope, known: Collection[str]) -> Iterator[Sighting]:
    rows = failing_schedules(Schedule.objects.using(look.using)).filter(failures__gte=rule.least)
    for row in _in_scope(rule, rows.order_by("last_error_at"), known):
        text = ngettext(
            "It failed %(count)s time: %(error)s",
            "It failed %(count)s times in a row: %(error)s",
            row.failures,
        ) % {"count": f"{row.failures:,}", "error": clean_text(row.last_error, LINE)}
        yield Sighting(str(row.pk), str(row), text, row.tenant)


def _in_scope(rule: Scope, rows: QuerySet[Schedule], known: Collection[str]) -> list[Schedule]:
    scope = {name: getattr(rule, name) for name in ("tenant", "queue", "task")}
    rows = rows.filter(**{name: value for name, value in scope.items() if value})
    found = [*rows.filter(pk__in=[int(key) for key in known]), *rows[:COUNTED_TO]]
    return list(dict.fromkeys(found))


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
        watch=Watch(_watch_late, 60.0, "seconds", ("queue", "task")),
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
        watch=Watch(_watch_failing, 3.0, "number", ("queue", "task")),
    ),
)
