"""What a rule finds wrong with schedules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta

from django.db.models import QuerySet
from django.utils.translation import gettext, ngettext

from ...status.amounts import COUNTED_TO, LINE
from ...status.figures import rough_text
from ...text import clean_text
from ..schedules.models import Schedule
from ..schedules.troubles import LATE, due_at, failing_schedules, late_schedules
from .fleet import Fleet, Sighting
from .models import AlertRule


def find(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    """Yield what a rule finds wrong. `known`: the keys of its open alerts, which come first."""
    is_late = rule.kind == AlertRule.Kind.LATE_SCHEDULE
    return _late(fleet, rule, known) if is_late else _failing(fleet, rule, known)


def _late(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    by = max(LATE, timedelta(seconds=rule.least))
    for row in _in_scope(rule, late_schedules(Schedule.objects.using(fleet.using), by), known):
        due = due_at(row)
        assert due is not None
        late = rough_text((fleet.now - due).total_seconds())
        text = gettext("It is late by %s.") % late
        yield Sighting(str(row.pk), str(row), text, row.tenant)


def _failing(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    rows = failing_schedules(Schedule.objects.using(fleet.using)).filter(failures__gte=rule.least)
    for row in _in_scope(rule, rows.order_by("last_error_at"), known):
        text = ngettext(
            "It failed %(count)s time: %(error)s",
            "It failed %(count)s times in a row: %(error)s",
            row.failures,
        ) % {"count": f"{row.failures:,}", "error": clean_text(row.last_error, LINE)}
        yield Sighting(str(row.pk), str(row), text, row.tenant)


def _in_scope(rule: AlertRule, rows: QuerySet[Schedule], known: Collection[str]) -> list[Schedule]:
    scope = {name: getattr(rule, name) for name in ("tenant", "queue", "task")}
    rows = rows.filter(**{name: value for name, value in scope.items() if value})
    found = [*rows.filter(pk__in=[int(key) for key in known]), *rows[:COUNTED_TO]]
    return list(dict.fromkeys(found))
