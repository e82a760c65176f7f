"""Retention rules as limits: how long jobs are kept, beside HISTORY_KEEP_MONTHS of settings.py."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ...conf import get_settings
from ...operations.history import oldest_kept
from ...text import matches
from .models import DAYS, RetentionRule

SETTING = 0
"""Stands for HISTORY_KEEP_MONTHS in place of the id of a rule."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Jobs that ended before a time lose something, by a rule or the setting."""

    before: datetime
    rule_id: int


Limits = tuple[Limit | None, ...]
"""The limits of one kind of job, in the order of DAYS; () if there are none."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of RetentionRule. `days`: in the order of DAYS."""

    id: int
    tenant: str | None
    task: str
    state: str
    days: tuple[int | None, ...]

    @property
    def rank(self) -> tuple[bool, bool, int, bool]:
        """How specific it is: see RetentionRule."""
        is_name = bool(self.task) and "*" not in self.task
        return self.tenant is not None, is_name, len(self.task), bool(self.state)

    def fits(self, tenant: str | None, name: str, state: str) -> bool:
        """Whether it is about such jobs."""
        return (
            self.tenant in (None, tenant)
            and self.state in ("", state)
            and (not self.task or matches(name, self.task))
        )


class Rules:
    """All rules at one moment, the most specific first, and HISTORY_KEEP_MONTHS."""

    def __init__(self, rules: Iterable[Rule], keep_months: int | None, now: datetime) -> None:
        self.said: object = None
        """Compared to see whether rules have changed."""
        self._keep_months = keep_months
        self._days: dict[tuple[str | None, str, str], list[tuple[int, int] | None]] = {}
        """The days and the rule of each limit of a kind of job, kept for later steps."""
        self._of_tenant: dict[str | None, list[Rule]] = {}
        self._set_now(now)
        self.all = sorted(rules, key=lambda rule: rule.rank, reverse=True)
        for rule in self.all:
            self._of_tenant.setdefault(rule.tenant, []).append(rule)

    def _set_now(self, now: datetime) -> None:
        self._now = now
        self._default = oldest_kept(self._keep_months, now)
        self._of_key: dict[tuple[str | None, str, str], Limits] = {}

    @classmethod
    def read(cls, using: str, now: datetime | None = None, former: Rules | None = None) -> Rules:
        """Return the stored rules. `former`: those of an earlier step."""
        moment, keep_months = now or datetime.now(UTC), get_settings().history_keep_months
        columns = ("id", "tenant", "task", "state", *DAYS)
        rows = list(RetentionRule.objects.using(using).order_by("pk").values_list(*columns))
        said = (rows, keep_months)
        if former is not None and former.said == said:
            made = copy(former)
            made._set_now(moment)
            return made
        rules = (
            Rule(pk, tenant, task, state, tuple(days)) for pk, tenant, task, state, *days in rows
        )
        made = cls(rules, keep_months, moment)
        made.said = said
        return made

    def limits(self, tenant: str | None, name: str, state: str) -> Limits:
        """Return the limits of such jobs, each from the most specific rule that sets it.

        `tenant`: "" is none; None: not known, since the queue was deleted.
        """
        key = (tenant, name, state)
        if key not in self._of_key:
            if key not in self._days:
                own = [] if tenant is None else self._of_tenant.get(tenant, [])
                rules = [r for r in (*own, *self._of_tenant.get(None, ())) if r.fits(*key)]
                self._days[key] = [_first(rules, place) for place in range(len(DAYS))]
            found = [
                None if days is None else Limit(self._now - timedelta(days=days[0]), days[1])
                for days in self._days[key]
            ]
            if found[0] is None and self._default is not None:
                found[0] = Limit(self._default, SETTING)
            self._of_key[key] = tuple(found) if any(found) else ()
        return self._of_key[key]

    @property
    def tenants(self) -> list[str] | None:
        """The tenants of the rules; None: all."""
        named = [tenant for tenant in self._of_tenant if tenant is not None]
        return None if None in self._of_tenant else named

    def is_old(self, month: datetime) -> bool:
        """Whether HISTORY_KEEP_MONTHS keeps no job of the month that begins then."""
        return self._default is not None and month < self._default

    @property
    def times(self) -> list[datetime]:
        """The times of all limits."""
        days = {number for rule in self.all for number in rule.days if number is not None}
        found = [self._now - timedelta(days=number) for number in days]
        return found if self._default is None else [*found, self._default]

    @property
    def forgotten(self) -> datetime | None:
        """The time before which no rule keeps a job, or None."""
        keeps = [rule for rule in self.all if rule.days[0] is not None]
        whole = next((rule for rule in keeps if rule.rank == (False, False, 0, False)), None)
        if whole is None and self._default is None:
            return None
        times = [self._now - timedelta(days=rule.days[0] or 0) for rule in keeps]
        return min(times if whole is not None else [*times, self._default or self._now])


def _first(rules: Iterable[Rule], place: int) -> tuple[int, int] | None:
    """Return the days, and the id, of the first rule that gives them."""
    for rule in rules:
        if (days := rule.days[place]) is not None:
            return days, rule.id
    return None
