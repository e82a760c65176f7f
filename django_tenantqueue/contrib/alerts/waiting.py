"""Conditions of waiting jobs: too many, too long, held, or without a worker, by queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from django.utils.translation import gettext

from ...batch_sizes import SMALL_BATCH
from ...features import Sighting
from ...gate_keys import MONITOR
from ...models import TenantQueue
from ...queries.control import count_queues
from ...queries.fleet import list_held_of_queues
from ...queries.tasks import list_task_line
from ...status.busy_queues import read_busy
from ...status.figures import NOTHING, duration_text
from ...status.held import GATES, cause_text, place_text

if TYPE_CHECKING:
    from .fleet import Fleet
    from .models import AlertRule

COUNTED_JOBS = 100_000
"""Waiting jobs that one rule counts. Halved: where many queues have long backlogs, those with
shorter waits are found later. Doubled: the leader counts for twice as long."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Waiting jobs of a queue, or of one task in it. `jobs`: None if not counted."""

    queue_id: int
    tenant: str
    queue: str
    executor: str
    task: str
    wait_seconds: float
    jobs: int | None = None

    @property
    def key(self) -> str:
        """See Alert.key."""
        return f"{self.queue_id} {self.task}".strip()

    def sighting(self, text: str) -> Sighting:
        label = f"{self.tenant or NOTHING} / {self.queue}"
        return Sighting(
            self.key, f"{label}: {self.task}" if self.task else label, text, self.tenant
        )


def too_many(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    """Yield the queues with more waiting jobs than the threshold."""
    most = int(rule.least)
    text = gettext("More than %s jobs wait.") % f"{most:,}"
    counted = 0
    queues = iter(_queues(fleet, rule, known))
    while counted < COUNTED_JOBS and (part := list(islice(queues, SMALL_BATCH))):
        counts = {queue.queue_id: queue.jobs for queue in part if queue.jobs is not None}
        if missing := [queue.queue_id for queue in part if queue.jobs is None]:
            read = count_queues(fleet.using, missing, running=0, waiting=most + 1)
            counts |= {load.queue_id: load.waiting for load in read}
            counted += sum(load.waiting for load in read)
        for queue in part:
            if counts.get(queue.queue_id, 0) > most:
                yield queue.sighting(text)


def too_long(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    """Yield the queues in which a job has waited for longer than the threshold."""
    least = rule.least
    for queue in _queues(fleet, rule, known):
        if queue.wait_seconds > least:
            waits = duration_text(queue.wait_seconds)
            yield queue.sighting(gettext("Its first job has waited for %s.") % waits)


def untaken(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    """Yield the queues whose waiting jobs no worker takes."""
    least = rule.least
    for queue in _queues(fleet, rule, known):
        is_taken = fleet.takers.take(queue.tenant, queue.queue, queue.executor)
        if queue.wait_seconds >= least and not is_taken:
            text = gettext("No worker takes its jobs. The first one has waited for %s.")
            yield queue.sighting(text % duration_text(queue.wait_seconds))


def held(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Sighting]:
    """Yield the queues with a job that a gate has held for longer than the threshold.

    The details of monitors are left out: they wait for each other.
    """
    least = rule.least
    found = {f"{one.queue_id} {one.gate}": one for one in fleet.held}
    if missing := [int(key.split()[0]) for key in known if key not in found]:
        read = list_held_of_queues(fleet.using, missing, most=1)
        found |= {f"{one.queue_id} {one.gate}": one for one in read}
    for key in sorted(found, key=lambda key: key not in known):
        one = found[key]
        is_long = one.gate != MONITOR and one.wait_seconds > least
        if is_long and _is_in_scope(rule, one.tenant, one.queue):
            text = gettext("Jobs are held by %(cause)s. The first one has waited for %(time)s.")
            text %= {"cause": cause_text(one), "time": duration_text(one.wait_seconds)}
            label = f"{place_text(one)}: {GATES[one.gate]}"
            yield Sighting(key, label, text, one.tenant)


def _queues(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> list[Waiting]:
    """Return the waiting jobs in a rule's scope, those with open alerts first."""
    found = _of_task(fleet, rule) if rule.task else _of_all_tasks(fleet, rule, known)
    return sorted(found, key=lambda queue: queue.key not in known)


def _of_all_tasks(fleet: Fleet, rule: AlertRule, known: Collection[str]) -> Iterator[Waiting]:
    found = {str(queue.id): queue for queue in fleet.seen_by(rule.tenant).busy.queues}
    if missing := [int(key.split()[0]) for key in known if key not in found]:
        found |= {str(queue.id): queue for queue in read_busy(fleet.using, missing)}
    for queue in found.values():
        is_in_scope = _is_in_scope(rule, queue.tenant, queue.name)
        if queue.wait_seconds is not None and is_in_scope:
            yield Waiting(
                queue.id, queue.tenant, queue.name, queue.executor, "", queue.wait_seconds
            )


def _of_task(fleet: Fleet, rule: AlertRule) -> Iterator[Waiting]:
    """Yield where jobs of a rule's task are ready, or were set aside by the task's control."""
    jobs: dict[int, int] = {}
    waits: dict[int, float] = {}
    rows = [row for row in fleet.ready_tasks(rule.tenant, rule.queue) if row.task == rule.task]
    rows += list_task_line(fleet.using, rule.task, most=COUNTED_JOBS)
    for row in rows:
        jobs[row.queue_id] = jobs.get(row.queue_id, 0) + row.jobs
        waits[row.queue_id] = max(waits.get(row.queue_id, 0.0), row.wait_seconds)
    queues = TenantQueue.objects.using(fleet.using).filter(pk__in=jobs)
    for pk, tenant, name, executor in queues.values_list("pk", "tenant", "name", "executor"):
        if _is_in_scope(rule, tenant, name):
            yield Waiting(pk, tenant, name, executor or "", rule.task, waits[pk], jobs[pk])


def _is_in_scope(rule: AlertRule, tenant: str, queue: str) -> bool:
    return rule.tenant in (None, tenant) and queue == (rule.queue or queue)
