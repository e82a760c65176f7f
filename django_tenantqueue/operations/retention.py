"""Shortens the history by the rules of retention, a bounded step at a time.

A pass reads each month in which something may be old enough, in the order of its pages. So its
cost depends on the size of these months, and not on the number of rules.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase

from django.db import transaction

from ..conf import get_settings
from ..models import RetentionRule, TenantQueue
from ..models.retention_rule import DAYS
from ..queries import retention as queries
from ..queries.retention import EndedJob, Removal, Span
from .history import Leaf, list_leaves, next_month

PAGES = 64
"""Pages of a step: about 1,000 jobs. Twice as many: locks are held twice as long. Half as many:
more statements, and a pass takes longer."""
PASS_SECONDS = 6 * 3600.0
"""How often a month is read again, as long as jobs in it become old enough. Halved: they are
removed earlier, and the reading costs twice as much."""
LOOK_SECONDS = 60.0
"""How often it is looked whether a pass is due: when rules have changed, after at most that."""
REST = 3.0
"""How long to pause after a step, in times of what it took. Twice as long: a pass takes nearly
twice as long. Half as long: other work on the server is delayed more."""
SHORTEST_REST = 0.02
SETTING = 0
"""What stands for HISTORY_KEEP in place of the id of a rule."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What ended before a time is removed, by a rule or by the setting."""

    before: datetime
    rule_id: int


Limits = tuple[Limit | None, ...]
"""The limits of one kind of job, in the order of DAYS."""
Key = tuple[int, str, str]
"""What decides which rules fit a job: its queue, its name and its state."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of RetentionRule. `days`: in the order of DAYS."""

    id: int
    tenant: str
    task: str
    state: str
    days: tuple[int | None, ...]

    @property
    def rank(self) -> tuple[bool, bool, int, bool]:
        """How specific it is: see RetentionRule."""
        is_name = bool(self.task) and "*" not in self.task
        return bool(self.tenant), is_name, len(self.task), bool(self.state)

    def fits(self, tenant: str, name: str, state: str) -> bool:
        """Whether it is about such jobs."""
        return (
            self.tenant in ("", tenant)
            and self.state in ("", state)
            and (self.task in ("", name) or ("*" in self.task and _matches(name, self.task)))
        )


def _matches(name: str, pattern: str) -> bool:
    """Match `*` alone: other signs of shells stand for themselves."""
    return fnmatchcase(name, pattern.replace("[", "[[]").replace("?", "[?]"))


class Rules:
    """All rules at one moment, the most specific first, and what HISTORY_KEEP says."""

    def __init__(
        self,
        rules: Iterable[Rule],
        keep_months: int | None,
        now: datetime,
        former: Rules | None = None,
    ) -> None:
        self.said = (list(rules), keep_months)
        """What is compared to see whether rules have changed."""
        self._default = oldest_kept(keep_months, now)
        self._now = now
        self._of_key: dict[tuple[str, str, str], Limits] = {}
        self._days: dict[tuple[str, str, str], list[tuple[int, int] | None]] = {}
        """The days and the rule of each limit of a kind of job, also for the steps that follow."""
        self._of_tenant: dict[str, list[Rule]] = {}
        if former is not None and former.said == self.said:
            self.all, self._of_tenant, self._days = former.all, former._of_tenant, former._days
            return
        self.all = sorted(self.said[0], key=lambda rule: rule.rank, reverse=True)
        for rule in self.all:
            self._of_tenant.setdefault(rule.tenant, []).append(rule)

    @classmethod
    def read(cls, using: str, now: datetime | None = None, former: Rules | None = None) -> Rules:
        """Return those of the database. `former`: those of an earlier step."""
        columns = ("id", "tenant", "task", "state", *DAYS)
        rows = RetentionRule.objects.using(using).order_by("pk").values_list(*columns)
        rules = [
            Rule(pk, tenant, task, state, tuple(days)) for pk, tenant, task, state, *days in rows
        ]
        return cls(rules, get_settings().history_keep, now or datetime.now(UTC), former)

    def limits(self, tenant: str, name: str, state: str) -> Limits:
        """Return what is removed of such jobs, each by the most specific rule that says so."""
        key = (tenant, name, state)
        if key not in self._of_key:
            if key not in self._days:
                own = self._of_tenant.get(tenant, []) if tenant else []
                rules = [r for r in (*own, *self._of_tenant.get("", ())) if r.fits(*key)]
                self._days[key] = [_first(rules, place) for place in range(len(DAYS))]
            found = [
                None if days is None else Limit(self._now - timedelta(days=days[0]), days[1])
                for days in self._days[key]
            ]
            if found[0] is None and self._default is not None:
                found[0] = Limit(self._default, SETTING)
            self._of_key[key] = tuple(found)
        return self._of_key[key]

    @property
    def times(self) -> list[datetime]:
        """The times of all limits."""
        days = {number for rule in self.all for number in rule.days if number is not None}
        found = [self._now - timedelta(days=number) for number in days]
        return found if self._default is None else [*found, self._default]

    @property
    def forgotten(self) -> datetime | None:
        """The time before which no job at all is kept: whole months are dropped. None: there is
        none."""
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


def oldest_kept(keep_months: int | None, now: datetime) -> datetime | None:
    """Return the beginning of the oldest month that HISTORY_KEEP keeps; None: all are kept."""
    if keep_months is None:
        return None
    month = now.year * 12 + now.month - 1 - keep_months
    return datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) if month >= 12 else None


def span_of(leaf: Leaf) -> Span:
    """Return the bounds of a month."""
    return Span(*(_midnight(day) for day in (leaf.month, next_month(leaf.month))))


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


@dataclass(slots=True)
class Amount:
    """Rows and their bytes."""

    rows: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        """Count one more row."""
        self.rows += 1
        self.bytes += size


Told = dict[tuple[int, str], Amount]
"""What is removed, by the id of the rule (or SETTING) and the column of DAYS that says so."""


@dataclass(slots=True)
class Pruner:
    """One reader of the history, with what it has read. Several may work at once.

    `dry_run`: change nothing. Its first pass reads each month in which something is old enough. A
    later one reads those again in which something has become so since, after PASS_SECONDS or a
    change of the rules.
    """

    dry_run: bool = False
    told: Told = field(default_factory=dict)
    """Of a dry run, what would be removed."""
    removed: Counter[str] = field(default_factory=Counter)
    """Rows that were changed, by the columns of DAYS; `keep_days`: deleted."""
    _leaves: list[Leaf] = field(default_factory=list)
    _page: int = 0
    _read: dict[str, tuple[float, datetime, object]] = field(default_factory=dict)
    """When each month was read: by the monotonic clock, by the calendar, and with which rules."""
    _tenants: dict[int, str] = field(default_factory=dict)
    _rules: Rules | None = None
    _took: float = 0.0

    @property
    def place(self) -> tuple[str, int] | None:
        """The month and the page that come next; None between two passes."""
        return (self._leaves[0].name, self._page) if self._leaves else None

    def begin(self, using: str, now: datetime | None = None) -> bool:
        """Begin a pass, if one is due; return whether that is so."""
        moment = now or datetime.now(UTC)
        rules = self._rules = Rules.read(using, moment)
        self._leaves = [leaf for leaf in list_leaves(using) if self._is_due(leaf, rules, moment)]
        self._page = 0
        self._tenants.clear()
        return bool(self._leaves)

    def _is_due(self, leaf: Leaf, rules: Rules, now: datetime) -> bool:
        span = span_of(leaf)
        reach = [limit for limit in rules.times if limit > span.start]
        if not reach or (rules.forgotten is not None and span.end <= rules.forgotten):
            return False  # all is young enough, or the month is dropped whole
        read = self._read.get(leaf.name)
        if read is None or read[2] != rules.said:
            return True
        passed = now - read[1]
        return time.monotonic() - read[0] >= PASS_SECONDS and any(
            limit - passed < span.end for limit in reach
        )

    def step(self, using: str, now: datetime | None = None) -> int:
        """Deal with the next pages; return how many jobs were changed (or would be)."""
        began = time.perf_counter()
        done = 0
        if self._leaves or self.begin(using, now):
            with transaction.atomic(using=using):
                done = self._step(using, self._leaves[0], now or datetime.now(UTC))
        self._took = time.perf_counter() - began
        return done

    def rest(self, done: object) -> float:
        """Return the seconds to wait after a step."""
        return max(SHORTEST_REST, REST * self._took) if self._leaves else LOOK_SECONDS

    def _step(self, using: str, leaf: Leaf, now: datetime) -> int:
        rules = self._rules = Rules.read(using, now, self._rules)  # they may have changed
        size = queries.measure_leaf(using, leaf.name)
        until = self._page + PAGES
        done = 0
        if size is not None and rules.times:
            done = self._change(using, leaf, rules, (self._page, until))
        if self._page == 0:
            self._read[leaf.name] = (time.monotonic(), now, rules.said)
        if size is None or until >= size.pages or not rules.times:
            del self._leaves[0]
            until = 0
        self._page = until
        return done

    def _change(self, using: str, leaf: Leaf, rules: Rules, pages: tuple[int, int]) -> int:
        span = span_of(leaf)
        jobs = queries.read_ended(using, span, pages, before=max(rules.times), whole=self.dry_run)
        if not jobs:
            return 0
        self._learn(using, {job.queue_id for job in jobs} - self._tenants.keys())
        latest = max(job.finished_at for job in jobs)
        old: list[int] = []
        thin: dict[int, Removal] = {}
        for job in jobs:
            limits = rules.limits(self._tenants.get(job.queue_id, ""), job.name, job.state)
            is_over = [limit is not None and job.finished_at < limit.before for limit in limits]
            has = (True, job.has_arguments, job.has_result, job.has_errors)
            going = [over and there for over, there in zip(is_over, has, strict=True)]
            if going[0]:
                old.append(job.id)
                self._tell(job, limits, [True, False, False, False])
            elif any(going):
                thin[job.id] = Removal(*going[1:])
                self._tell(job, limits, going)
        if self.dry_run:
            return len(old) + len(thin)
        deleted = queries.delete_ended(using, span, old, latest) if old else []
        thinned = queries.thin_ended(using, span, thin, latest) if thin else []
        self.removed["keep_days"] += len(deleted)
        for job_id in thinned:
            for name, gone in zip(DAYS[1:], astuple(thin[job_id]), strict=True):
                self.removed[name] += gone
        return len(deleted) + len(thinned)

    def _tell(self, job: EndedJob, limits: Limits, going: list[bool]) -> None:
        if not self.dry_run:
            return
        sizes = (job.row_bytes, job.argument_bytes, job.result_bytes, job.error_bytes)
        for name, limit, gone, size in zip(DAYS, limits, going, sizes, strict=True):
            if gone and limit is not None:
                self.told.setdefault((limit.rule_id, name), Amount()).add(size)

    def _learn(self, using: str, queue_ids: set[int]) -> None:
        """Find the tenants of queues; "" for those that raw SQL has deleted."""
        if queue_ids:
            rows = TenantQueue.objects.using(using).filter(pk__in=queue_ids)
            self._tenants |= dict.fromkeys(queue_ids, "") | dict(rows.values_list("pk", "tenant"))


def dropped_whole(using: str, now: datetime | None = None) -> list[Leaf]:
    """Return the months of which no job is kept by any rule, the oldest first."""
    before = Rules.read(using, now).forgotten
    if before is None:
        return []
    return [leaf for leaf in list_leaves(using) if span_of(leaf).end <= before]
