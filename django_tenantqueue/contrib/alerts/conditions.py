"""What a rule finds wrong at the moment. Each read is bounded, and shared by the rules of a check.

The first page of the admin and `queuestatus` read the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from django.utils.translation import gettext, ngettext

from ...queries.figures import ALL, list_failing_tasks, list_failures, list_figures_of_queues
from ...status.amounts import COUNTED_TO, READ, VISITED
from ...status.conditions.look import FAILING_LEAST
from ...status.deaths import list_deaths
from ...status.figures import NOTHING, rough_text
from ...status.job_pages import queue_ids
from . import waiting
from .fleet import Fleet, Sighting
from .models import AlertRule

TASK_PREFIX = "django_tenantqueue.alerts."
"""What the names of the tasks of alerts begin with. Their own failures open no alert."""


def find(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    """Yield what a rule finds wrong. `known`: the keys of its open alerts, which come first."""
    kind = AlertRule.Kind
    match rule.kind:
        case kind.WAITING:
            return waiting.too_many(fleet, rule, known)
        case kind.WAIT:
            return waiting.too_long(fleet, rule, known)
        case kind.NO_WORKER:
            return waiting.untaken(fleet, rule, known)
        case kind.HELD:
            return waiting.held(fleet, rule, known)
        case kind.LATE_SCHEDULE | kind.FAILING_SCHEDULE:
            from . import of_schedules  # they may not be installed

            return of_schedules.find(fleet, rule, known)
        case kind.FAILURE_RATE:
            found = _failing(fleet, rule)
        case kind.DEAD_WORKER:
            found = _dead(fleet, rule)
        case kind.HALTED_SESSION:
            text = gettext("The session is halted.")
            found = _stopped(fleet, rule, "session", "halted", text)
        case kind.STOPPED_MONITOR:
            text = gettext("The monitor has stopped after failures.")
            found = _stopped(fleet, rule, "monitor", "stopped", text)
        case _:
            found = _failed(fleet, rule)
    return iter(sorted(found, key=lambda sighting: sighting.key not in known))


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
                fleet.using, since=since, least=FAILING_LEAST, share=share, most=COUNTED_TO
            )
        ]
    else:
        periods = list_figures_of_queues(
            fleet.using, queues, since=since, seconds=2 * 60.0 * rule.range_minutes
        )
        found = [(period.name, period.counts.failures, period.counts.ended) for period in periods]
    for name, failures, ended in found:
        is_high = failures >= FAILING_LEAST and failures >= share * ended
        if is_high and _is_watched(rule, name):
            text = gettext("%(failed)s of %(ended)s runs failed in the last %(time)s.") % {
                "failed": f"{failures:,}",
                "ended": f"{ended:,}",
                "time": rough_text(60.0 * rule.range_minutes),
            }
            yield Sighting(name, name, text)


def _dead(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    for death in list_deaths(fleet.using, _since(fleet, rule)):
        text = gettext("The worker has died: %s.") % death.cause
        yield Sighting(str(death.id), f"{death.name} ({death.host})", text)


def _is_watched(rule: AlertRule, task: str) -> bool:
    return task == rule.task if rule.task else bool(task) and not task.startswith(TASK_PREFIX)


def _failed(fleet: Fleet, rule: AlertRule) -> Iterator[Sighting]:
    queues = _scope(fleet, rule)
    rows, _read_from = list_failures(
        fleet.using,
        since=_since(fleet, rule),
        seconds=2 * 60.0 * rule.range_minutes,
        groups=COUNTED_TO,
        most=READ,
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


def _stopped(fleet: Fleet, rule: AlertRule, kind: str, why: str, text: str) -> Iterator[Sighting]:
    for line in fleet.lines:
        if (line.kind, line.why) == (kind, why) and line.tenant == (rule.tenant or line.tenant):
            label = f"{line.tenant or NOTHING} / {line.name}"
            yield Sighting(f"{line.tenant} {line.name}", label, text, line.tenant)
