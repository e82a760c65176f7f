"""Conditions that alert rules can watch, and how to watch each.

Each read is limited, and shared by the rules of a check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ... import features
from ...exceptions import Unsupported
from ...features import Condition, Feature, Severity, Sighting, Watch
from ...queries.figures import ALL, list_failing_tasks, list_failures, list_figures_of_queues
from ...status.conditions import Code, conditions, objects_of, text_of
from ...status.deaths import list_deaths
from ...status.display_limits import COUNTED_TO, READ, VISITED
from ...status.figures import NOTHING, rough_text
from ...status.job_pages import queue_ids
from ...status.thresholds import FAILING_LEAST, FAILING_SHARE
from . import waiting

if TYPE_CHECKING:
    from .fleet import Fleet
    from .models import AlertRule

TASK_PREFIX = "django_tenantqueue.alerts."
"""Prefix of the tasks of alerts. Their own failures open no alert, unless a rule names one."""


def _scope(fleet: Fleet, rule: AlertRule) -> tuple[int, ...] | None:
    """Return the ids of the queues in a rule's scope; None: all."""
    if rule.tenant is None and not rule.queue:
        return None
    found = queue_ids(fleet.using, tenant=rule.tenant, name=rule.queue or None)
    return found[:VISITED]


def _since(fleet: Fleet, rule: AlertRule) -> datetime:
    minute = fleet.now.replace(second=0, microsecond=0)
    return minute - timedelta(minutes=rule.range_minutes)


def _failing_tasks(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    since, queues, share = _since(fleet, rule), _scope(fleet, rule), rule.least / 100
    if queues is None:
        found = [
            (task.task, task.failures, task.ended)
            for task in list_failing_tasks(
                fleet.using, since=since, least=FAILING_LEAST, share=share, most=COUNTED_TO
            )
        ]
    else:
        periods = list_figures_of_queues(
            fleet.using, queues, since=since, seconds=2 * 60.0 * rule.range_minutes
        )
        found = [(period.task, period.counts.failures, period.counts.ended) for period in periods]
    for name, failures, ended in found:
        is_high = failures >= FAILING_LEAST and failures >= share * ended
        if is_high and _is_watched(rule, name):
            text = gettext("%(failed)s of %(ended)s runs failed in the last %(time)s.") % {
                "failed": f"{failures:,}",
                "ended": f"{ended:,}",
                "time": rough_text(60.0 * rule.range_minutes),
            }
            yield Sighting(name, name, text)


def _deaths(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    for death in list_deaths(fleet.using, _since(fleet, rule)):
        text = gettext("The worker has died: %s.") % death.cause
        yield Sighting(str(death.id), f"{death.name} ({death.host})", text)


def _is_watched(rule: AlertRule, task: str) -> bool:
    return task == rule.task if rule.task else bool(task) and not task.startswith(TASK_PREFIX)


def _failures(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    queues = _scope(fleet, rule)
    rows, _read_from = list_failures(
        fleet.using,
        since=_since(fleet, rule),
        seconds=2 * 60.0 * rule.range_minutes,
        groups=COUNTED_TO,
        most=READ,
        queues=(ALL,) if queues is None else queues,
        task=rule.task or None,
    )
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        failed, newest = counts.get((row.task, row.error), (0, 0))
        counts[row.task, row.error] = (failed + row.failed, max(newest, row.last_job_id or 0))
    least = max(rule.least, 1.0)
    for (name, error), (failed, newest) in counts.items():
        if failed >= least and _is_watched(rule, name):
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


def _stopped(fleet: Fleet, rule: AlertRule, kind: str, why: str, text: str) -> Iterator[Sighting]:
    for line in fleet.lines:
        if (line.kind, line.why) == (kind, why) and rule.tenant in (None, line.tenant):
            label = f"{line.tenant or NOTHING} / {line.name}"
            yield Sighting(f"{line.tenant} {line.name}", label, text, line.tenant)


def _halted(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    return _stopped(fleet, rule, "session", "halted", gettext("The session is halted."))


def _stopped_monitors(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    text = gettext("The monitor has stopped after failures.")
    return _stopped(fleet, rule, "monitor", "stopped", text)


Find = Callable[["Fleet", "AlertRule", Collection[str]], Iterator[Sighting]]


def _known_first(read: Callable[[Fleet, AlertRule], Iterable[Sighting]]) -> Find:
    """Return a Find that yields sightings with open alerts first."""

    def find(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
        return iter(sorted(read(fleet, rule), key=lambda sighting: sighting.key not in known))

    return find


QUEUE, TASK = "queue", "task"
OWN = (
    Condition(
        "queue_backlog",
        Severity.TIME,
        title=_("too many waiting jobs"),
        watch=Watch(waiting.too_many, 1000.0, "number", (QUEUE, TASK)),
    ),
    Condition(
        "jobs_held",
        Severity.TIME,
        title=_("held jobs"),
        watch=Watch(waiting.held, 300.0, "seconds", (QUEUE,)),
    ),
    Condition(
        "job_failed",
        Severity.PEOPLE,
        title=_("failed jobs"),
        watch=Watch(_known_first(_failures), 1.0, "number", (QUEUE, TASK)),
    ),
)
"""Conditions that only rules watch."""
OF_CORE: dict[str, Watch] = {
    Code.QUEUE_LATE: Watch(waiting.too_long, 300.0, "seconds", (QUEUE, TASK)),
    Code.NO_WORKER_TAKES: Watch(waiting.untaken, 60.0, "seconds", (QUEUE, TASK)),
    Code.TASK_FAILING: Watch(
        _known_first(_failing_tasks), 100 * FAILING_SHARE, "percent", (QUEUE, TASK)
    ),
    Code.WORKER_DIED: Watch(_known_first(_deaths), of_tenants=False),
    Code.SESSION_HALTED: Watch(_known_first(_halted)),
    Code.MONITOR_STOPPED: Watch(_known_first(_stopped_monitors)),
}
"""How to watch conditions of the core that have a threshold, or many objects."""


def watched() -> dict[str, tuple[Condition, Watch]]:
    """Return what rules may watch, by code."""
    return _watched_of(features.installed())


@cache
def _watched_of(parts: tuple[Feature, ...]) -> dict[str, tuple[Condition, Watch]]:
    found = {}
    for condition in conditions():
        watch = OF_CORE.get(condition.code) or condition.watch or _as_found(condition)
        if watch is not None:
            found[str(condition.code)] = condition, watch
    return found


def kinds() -> list[tuple[str, Any]]:
    """Return the codes of conditions that rules may watch, with their titles."""
    return [(code, condition.title) for code, (condition, _watch) in watched().items()]


def find(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    """Yield what a rule finds wrong. `known`: the keys of its open alerts, which come first.

    Raises Unsupported when no installed app has its condition.
    """
    if rule.watch is None:
        raise Unsupported(
            f"no installed app has the condition {rule.kind!r}: add its app to INSTALLED_APPS, or "
            "delete the rule"
        )
    return rule.watch.find(fleet, rule, known)


def _as_found(condition: Condition) -> Watch | None:
    """Return a Watch with a sighting for each name, or each sentence, of the status report."""
    look_for = condition.find
    if look_for is None:
        return None

    def read(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
        for values in look_for(fleet.seen_by(rule.tenant)):
            for one in objects_of(values):
                key = one.key if one.tenant is None else f"{one.tenant}/{one.key}"
                text = text_of(condition, values, [one])
                label = str(one or condition.title)
                yield Sighting(key or str(condition.code), label, text, rule.tenant)

    return Watch(_known_first(read), of_tenants=condition.of_tenants)
