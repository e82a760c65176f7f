"""Applies retention rules to the history, a small step at a time.

A pass reads each month in which something may be old enough, in the order of its pages. Its cost
depends on the size of these months, not on the number of rules.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import NamedTuple

from django.db import transaction

from ...models import TenantQueue
from ...operations.history import Leaf, dropped_whole, list_leaves
from ...queries.base import array, fetch
from ...queries.lists import plan_without
from ...status.display_limits import VISITED
from .models import DAYS
from .rules import Limits, Rules

PAGES = 16
"""Pages of a step: about 250 jobs."""
PASS_SECONDS = 6 * 3600.0
"""Interval at which a month is read again while jobs in it become old enough."""
REST = 9.0
"""Pause after a step, as a multiple of the time it took."""

AVOIDED = ("enable_seqscan", "enable_indexscan", "enable_bitmapscan")
"""Plans that would read the whole month instead of a range of pages."""


class EndedJob(NamedTuple):
    """The columns that decide how long an ended job is kept, and the sizes of its values.

    A tuple, since thousands are read in a second.
    """

    id: int
    finished_at: datetime
    queue_id: int
    task: str
    state: str
    has_arguments: bool
    has_result: bool
    has_errors: bool
    row_bytes: int
    argument_bytes: int
    result_bytes: int
    error_bytes: int


@dataclass(frozen=True, slots=True)
class LeafSize:
    """Size of one month. `about`: its rows, as of the last vacuum or analyze."""

    pages: int
    bytes: int
    about: int


def measure_leaf(using: str, leaf: str) -> LeafSize | None:
    """Return the size of a month's table; None if there is no such table."""
    rows = fetch(using, "measure_leaf", {"leaf": leaf})
    return LeafSize(*rows[0]) if rows else None


@dataclass(slots=True)
class Amount:
    rows: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        self.rows += 1
        self.bytes += size


Told = dict[tuple[int, str], Amount]
"""What is removed, by the id of the rule (or SETTING) and the column of DAYS."""


@dataclass(slots=True)
class Pruner:
    """A reader of the history. Several may work at once.

    `dry_run`: change nothing. The first pass reads each month in which something is old enough. A
    later pass reads the months again in which more is old enough, after PASS_SECONDS or a change of
    the rules.
    """

    dry_run: bool = False
    told: Told = field(default_factory=dict)
    """What a dry run would remove."""
    removed: Counter[str] = field(default_factory=Counter)
    """Rows that were changed, by the columns of DAYS; `keep_days`: deleted."""
    _leaves: list[Leaf] = field(default_factory=list)
    _page: int = 0
    _read: dict[str, tuple[float, datetime, object]] = field(default_factory=dict)
    """When each month was read: by the monotonic clock, by the calendar, and with which rules."""
    _left: set[str] = field(default_factory=set)
    """Months with jobs that were locked, or wait for the end of their monitor."""
    _tenants: dict[int, str | None] = field(default_factory=dict)
    _queues: list[int] | None = None
    """Queues of the rules, if all of them name tenants."""
    _rules: Rules | None = None
    _took: float = 0.0

    @property
    def place(self) -> tuple[str, int] | None:
        """The next month and page; None between two passes."""
        return (self._leaves[0].name, self._page) if self._leaves else None

    def begin(self, using: str, now: datetime | None = None) -> bool:
        """Begin a pass if one is due; return whether it is."""
        moment = now or datetime.now(UTC)
        rules = self._rules = Rules.read(using, moment)
        self._find_queues(using, rules)
        dropped = set(dropped_whole(using, moment))
        leaves = [leaf for leaf in list_leaves(using) if leaf not in dropped]
        self._leaves = [leaf for leaf in leaves if self._is_due(leaf, rules, moment)]
        self._page = 0
        return bool(self._leaves)

    def _is_due(self, leaf: Leaf, rules: Rules, now: datetime) -> bool:
        reach = [limit for limit in rules.times if limit > leaf.start]
        if not reach or self._queues_in(leaf, rules) == []:
            return False  # all is young enough, or of tenants without rules
        read = self._read.get(leaf.name)
        if read is None or read[2] != rules.said:
            return True
        passed = now - read[1]
        return time.monotonic() - read[0] >= PASS_SECONDS and (
            leaf.name in self._left or any(limit - passed < leaf.end for limit in reach)
        )

    def step(self, using: str, now: datetime | None = None) -> int:
        """Process the next pages; return how many jobs were changed, or would be."""
        began = time.perf_counter()
        done = 0
        if self._leaves or self.begin(using, now):
            with transaction.atomic(using=using):
                done = self._step(using, self._leaves[0], now or datetime.now(UTC))
        self._took = time.perf_counter() - began
        return done

    def rest(self, done: object) -> float:
        """Return the seconds to wait after a step; inf: until the next pass is due."""
        return REST * self._took if self._leaves else inf

    def _step(self, using: str, leaf: Leaf, now: datetime) -> int:
        former, rules = self._rules, Rules.read(using, now, self._rules)
        self._rules = rules
        if former is None or former.said != rules.said:  # they have changed
            self._find_queues(using, rules)
        size = measure_leaf(using, leaf.name)
        until = self._page + PAGES
        done = 0
        if self._page == 0:
            self._left.discard(leaf.name)
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
        jobs = self._read_jobs(using, leaf, pages, rules)
        self._learn(using, {job.queue_id for job in jobs} - self._tenants.keys())
        latest = leaf.start
        old: list[int] = []
        thin: dict[int, list[bool]] = {}
        for job in jobs:
            limits = rules.limits(self._tenants[job.queue_id], job.task, job.state)
            if not limits:
                continue
            latest = max(latest, job.finished_at)
            is_over = [limit is not None and job.finished_at < limit.before for limit in limits]
            if is_over[0]:
                old.append(job.id)
                self._tell(job, limits, [True, False, False, False])
                continue
            has = (True, job.has_arguments, job.has_result, job.has_errors)
            going = [over and there for over, there in zip(is_over, has, strict=True)]
            if any(going):
                thin[job.id] = going[1:]
                self._tell(job, limits, going)
        if self.dry_run:
            return len(old) + len(thin)
        bounds = {"start": leaf.start, "end": leaf.end, "latest": latest}
        deleted = fetch(using, "delete_ended", {"ids": array(old), **bounds}) if old else []
        thinned = []
        if thin:
            params = {"ids": array(thin), **bounds}
            removed = map(array, zip(*thin.values(), strict=True))
            params |= zip(("arguments", "results", "errors"), removed, strict=True)
            thinned = fetch(using, "thin_ended", params)
        if len(deleted) + len(thinned) < len(old) + len(thin):
            self._left.add(leaf.name)
        self.removed["keep_days"] += len(deleted)
        for (job_id,) in thinned:
            for name, gone in zip(DAYS[1:], thin[job_id], strict=True):
                self.removed[name] += gone
        return len(deleted) + len(thinned)

    def _read_jobs(
        self, using: str, leaf: Leaf, pages: tuple[int, int], rules: Rules
    ) -> list[EndedJob]:
        """Return the jobs in these pages of a month that may be old enough.

        `pages`: the first page, and the page after the last.
        """
        queues = self._queues_in(leaf, rules)
        params = {
            "first": f"({pages[0]},0)",
            "until": f"({pages[1]},0)",
            "start": leaf.start,
            "end": leaf.end,
            "before": max(rules.times),
            "queues": None if queues is None else array(queues),
            "whole": self.dry_run,
        }
        with plan_without(using, AVOIDED):
            return list(map(EndedJob._make, fetch(using, "read_ended", params)))

    def _queues_in(self, leaf: Leaf, rules: Rules) -> list[int] | None:
        """Return the queues whose jobs may be removed in a month; None: all."""
        return None if rules.is_old(leaf.start) else self._queues

    def _tell(self, job: EndedJob, limits: Limits, going: list[bool]) -> None:
        if not self.dry_run:
            return
        sizes = (job.row_bytes, job.argument_bytes, job.result_bytes, job.error_bytes)
        for name, limit, gone, size in zip(DAYS, limits, going, sizes, strict=True):
            if gone and limit is not None:
                self.told.setdefault((limit.rule_id, name), Amount()).add(size)

    def _find_queues(self, using: str, rules: Rules) -> None:
        """Find the queues of the rules, if all rules name tenants."""
        self._tenants.clear()
        self._queues = None
        if (tenants := rules.tenants) is not None:
            rows = TenantQueue.objects.using(using).filter(tenant__in=tenants)
            found: dict[int, str | None] = dict(rows.values_list("pk", "tenant")[: VISITED + 1])
            if len(found) <= VISITED:
                self._tenants = found
                self._queues = sorted(found)

    def _learn(self, using: str, queue_ids: set[int]) -> None:
        """Find the tenants of queues; None for those that raw SQL has deleted."""
        if queue_ids:
            rows = TenantQueue.objects.using(using).filter(pk__in=queue_ids)
            self._tenants |= dict.fromkeys(queue_ids) | dict(rows.values_list("pk", "tenant"))
