"""What a rule finds wrong at the moment. Each read is bounded, and shared by the rules of a check.

The first page of the admin and `queuestatus` read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import TypeVar

from django.utils.translation import gettext, ngettext

from ..models import AlertRule, Schedule
from ..queries.control import count_queues
from ..queries.figures import ALL, list_failing_tasks, list_failures, list_figures_of_queues
from ..queries.fleet import BusyQueue, StuckLine, list_busy_of_queues, list_stuck_lines
from ..status.figures import COUNTED_TO, NOTHING, duration_text, rough_text
from ..status.fleet_report import FAILING_LEAST, VISITED
from ..status.job_pages import queue_ids
from ..status.queue_troubles import Busy, read_takers, walk_busy
from ..status.schedules import late_schedules
from ..status.workers import Takers

TASK_PREFIX = "django_tenantqueue.alerts."
"""What the names of the tasks of alerts begin with. Their own failures open no alert."""
READ = 1000
"""Late schedules, and failing tasks or errors, that one rule reads."""
COUNTED_AT_ONCE = 50
"""Queues whose waiting jobs one statement counts."""
COUNTED_JOBS = 100_000
"""Waiting jobs that one rule counts. Halved: where many queues have long backlogs, those with
shorter waits are found later. Doubled: the leader counts for twice as long."""
FIGURE_ROWS = 20_000
"""Rows of figures that a rule about failed jobs reads of each queue."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something wrong: the object, by a key that stays and a label to read, and what it is.

    `tenant`: whose it is; "" where it is that of the rule, or of no tenant.
    """

    key: str
    label: str
    text: str
    tenant: str = ""


class Fleet:
    """What the rules of one check look at, each part read at most once."""

    def __init__(self, using: str, now: datetime) -> None:
        self.using = using
        self.now = now
        self._read: dict[str, object] = {}

    def _once(self, name: str, read: Callable[[], T]) -> T:
        if name not in self._read:
            self._read[name] = read()
        return self._read[name]  # type: ignore[return-value]

    def busy(self, tenant: str) -> Busy:
        """Return the queues with jobs: of a tenant, or of all ("")."""
        tenants = [tenant] if tenant else None
        return self._once(f"busy {tenant}", partial(walk_busy, self.using, tenants))

    @property
    def takers(self) -> Takers:
        """The queues that workers serve."""
        return self._once("takers", lambda: read_takers(self.using))

    @property
    def lines(self) -> list[StuckLine]:
        """Lines of held jobs that move no more."""
        return self._once("lines", lambda: list_stuck_lines(self.using, most=VISITED))


def find(fleet: Fleet, rule: AlertRule, known: Collection[str] = ()) -> Iterator[Sighting]:
    """Yield what a rule finds wrong. `known`: the keys of its open alerts, which come first."""
    kind = AlertRule.Kind
    match rule.kind:
        case kind.WAITING:
            return _waiting(fleet, rule, known)
        case kind.WAIT:
            return _waits(fleet, rule, known)
        case kind.NO_WORKER:
            return _untaken(fleet, rule, known)
        case kind.LATE_SCHEDULE:
            return _late(fleet, rule, known)
        case kind.FAILURE_RATE:
            found = _failing(fleet, rule)
        case kind.HALTED_SESSION:
            text = gettext("The session is halted.")
            found = _stopped(fleet, rule, "session", "halted", text)
        case kind.STOPPED_MONITOR:
            text = gettext("The monitor has stopped after failures.")
            found = _stopped(fleet, rule, "monitor", "stopped", text)
        case _:
            found = _failed(fleet, rule)
    return iter(sorted(found, key=lambda sighting: sighting.key not in known))


def _queues(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> list[BusyQueue]:
    """Return the queues with ready jobs in a rule's scope, those of open alerts first."""
    found = {str(queue.id): queue for queue in fleet.busy(rule.tenant).queues}
    if missing := [int(key) for key in known if key not in found]:
        read = list_busy_of_queues(fleet.using, missing, most=len(missing), active=COUNTED_TO)
        found |= {str(queue.id): queue for queue in read}
    queues = [
        queue
        for queue in found.values()
        if queue.wait_seconds is not None
        and queue.name == (rule.queue or queue.name)
        and queue.tenant == (rule.tenant or queue.tenant)
    ]
    return sorted(queues, key=lambda queue: str(queue.id) not in known)


def _waiting(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    most = int(rule.least)
    counted = 0
    queues = iter(_queues(fleet, rule, known))
    while counted < COUNTED_JOBS and (part := list(islice(queues, COUNTED_AT_ONCE))):
        read = count_queues(fleet.using, [queue.id for queue in part], most=most + 1)
        loads = {load.queue_id: load for load in read}
        counted += sum(load.waiting for load in loads.values())
        for queue in part:
            if queue.id in loads and loads[queue.id].waiting > most:
                text = gettext("More than %s jobs wait.") % f"{most:,}"
                yield Sighting(str(queue.id), _label(queue), text, queue.tenant)


def _waits(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    for queue in _queues(fleet, rule, known):
        waits = queue.wait_seconds or 0.0
        if waits > rule.least:
            text = gettext("Its first job waits for %s.") % duration_text(waits)
            yield Sighting(str(queue.id), _label(queue), text, queue.tenant)


def _untaken(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    for queue in _queues(fleet, rule, known):
        waits = queue.wait_seconds or 0.0
        if waits >= rule.least and not fleet.takers.take(queue.tenant, queue.name):
            text = gettext("No worker takes its jobs. The first one waits for %s.")
            yield Sighting(str(queue.id), _label(queue), text % duration_text(waits), queue.tenant)


def _label(queue: BusyQueue) -> str:
    return f"{queue.tenant or NOTHING} / {queue.name}"


def _scope(fleet: Fleet, rule: AlertRule) -> tuple[int, ...] | None:
    """Return the ids of the queues in a rule's scope; None: all."""
    if not rule.tenant and not rule.queue:
        return None
    found = queue_ids(fleet.using, tenant=rule.tenant or None, name=rule.queue or None)
    return found[:VISITED]


def _since(fleet: Fleet, rule: AlertRule) -> datetime:
    minute = fleet.now.replace(second=0, microsecond=0)
    return minute - timedelta(minutes=rule.range_minutes)


def _failing(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    since, queues, share = _since(fleet, rule), _scope(fleet, rule), rule.least / 100
    if queues is None:
        found = [
            (task.name, task.failures, task.ended)
            for task in list_failing_tasks(
                fleet.using, since=since, least=FAILING_LEAST, share=share, most=READ
            )
        ]
    else:
        periods = list_figures_of_queues(
            fleet.using, queues, since=since, seconds=2 * 60.0 * rule.range_minutes
        )
        found = [
            (period.name, period.counts.failed + period.counts.retried, period.counts.ended)
            for period in periods
        ]
    for name, failures, ended in found:
        is_high = failures >= FAILING_LEAST and failures >= share * ended
        if is_high and _is_watched(rule, name):
            text = gettext("%(failed)s of %(ended)s runs failed in the last %(time)s.") % {
                "failed": f"{failures:,}",
                "ended": f"{ended:,}",
                "time": rough_text(60.0 * rule.range_minutes),
            }
            yield Sighting(name, name, text)


def _is_watched(rule: AlertRule, task: str) -> bool:
    return task == rule.task if rule.task else bool(task) and not task.startswith(TASK_PREFIX)


def _failed(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    queues = _scope(fleet, rule)
    rows, _read_from = list_failures(
        fleet.using,
        since=_since(fleet, rule),
        seconds=2 * 60.0 * rule.range_minutes,
        groups=READ,
        most=FIGURE_ROWS,
        queues=(ALL,) if queues is None else queues,
        name=rule.task or None,
    )
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        failed, newest = counts.get((row.name, row.error), (0, 0))
        counts[row.name, row.error] = (failed + row.failed, max(newest, row.last_job_id or 0))
    for (name, error), (failed, newest) in counts.items():
        if failed >= max(rule.least, 1.0) and _is_watched(rule, name):
            text = ngettext(
                "%(count)s job failed in the last %(time)s, the newest is #%(job)d.",
                "%(count)s jobs failed in the last %(time)s, the newest is #%(job)d.",
                failed,
            ) % {
                "count": f"{failed:,}",
                "time": rough_text(60.0 * rule.range_minutes),
                "job": newest,
            }
            yield Sighting(f"{name} {error}", f"{name}: {error.rpartition('.')[2]}", text)


def _late(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    rows = late_schedules(Schedule.objects.using(fleet.using)).filter(
        next_at__lte=fleet.now - timedelta(seconds=rule.least)
    )
    scope = {name: getattr(rule, name) for name in ("tenant", "queue", "task")}
    rows = rows.filter(**{name: value for name, value in scope.items() if value})
    found = [*rows.filter(pk__in=[int(key) for key in known])] if known else []
    found += rows.order_by("next_at")[:READ]
    for row in dict.fromkeys(found):
        assert row.next_at is not None
        late = rough_text((fleet.now - row.next_at).total_seconds())
        text = gettext("It is late by %s.") % late
        yield Sighting(str(row.pk), str(row), text, row.tenant)


def _stopped(fleet: Fleet, rule: AlertRule, kind: str, why: str, text: str) -> Iterator[Sighting]:
    for line in fleet.lines:
        if (line.kind, line.why) == (kind, why) and line.tenant == (rule.tenant or line.tenant):
            label = f"{line.tenant or NOTHING} / {line.name}"
            yield Sighting(f"{line.tenant} {line.name}", label, text, line.tenant)
