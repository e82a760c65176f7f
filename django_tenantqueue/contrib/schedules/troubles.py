"""Conditions: late and failing schedules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ...features import Condition, Named, Scope, Severity, Sighting, Watch
from ...status.conditions import Look, names
from ...status.display_limits import COUNTED_TO, LINE, PAGE
from ...status.figures import rough_text
from ...text import clean_text
from .models import LATE, Schedule, ScheduleQuerySet


def _rows(look: Look) -> ScheduleQuerySet:
    rows = Schedule.objects.using(look.using)
    if look.tenants is None:
        return rows
    return rows.filter(tenant__in=sorted(look.tenants))


def _named(row: Schedule) -> Named:
    return Named(str(row), row.name, tenant=row.tenant)


def _watch_late(look: Look, rule: Scope, known: Collection[str]) -> Iterator[Sighting]:
    by = max(LATE, timedelta(seconds=rule.least))
    for row in _in_scope(rule, Schedule.objects.using(look.using).late(by), known):
        assert row.due_at is not None
        late = rough_text((look.now - row.due_at).total_seconds())
        text = gettext("It is late by %s.") % late
        yield Sighting(str(row.pk), str(row), text, row.tenant)


def _watch_failing(look: Look, rule: Scope, known: Collection[str]) -> Iterator[Sighting]:
    rows = Schedule.objects.using(look.using).failing().filter(failures__gte=rule.least)
    for row in _in_scope(rule, rows.order_by("last_error_at"), known):
        text = ngettext(
            "It failed %(count)s time: %(error)s",
            "It failed %(count)s times in a row: %(error)s",
            row.failures,
        ) % {"count": f"{row.failures:,}", "error": clean_text(row.last_error, LINE)}
        yield Sighting(str(row.pk), str(row), text, row.tenant)


def _in_scope(rule: Scope, rows: ScheduleQuerySet, known: Collection[str]) -> list[Schedule]:
    scope = {name: getattr(rule, name) or None for name in ("queue", "task")}
    scope["tenant"] = rule.tenant
    rows = rows.filter(**{name: value for name, value in scope.items() if value is not None})
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
        find=lambda look: names(map(_named, _rows(look).late()[:PAGE])),
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
            map(_named, _rows(look).failing().order_by("last_error_at")[:PAGE])
        ),
        of_tenants=True,
        watch=Watch(_watch_failing, 3.0, "number", ("queue", "task")),
    ),
)
