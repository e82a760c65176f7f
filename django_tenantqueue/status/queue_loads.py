"""What is asked about tenant queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now

from ..calls.sources import registered_tasks
from ..conf import get_settings
from ..models import Job, QueueRate, TenantQueue
from ..queries.control import QueueLoad, count_queues
from .display_limits import COUNTED_TO, TOTAL_COUNTED_TO
from .served_queues import Takers


def unknown_queues(using: str, names: Iterable[str]) -> list[str]:
    """Return those of `names` that no tenant has a queue of."""
    wanted = list(dict.fromkeys(names))
    known = set(
        TenantQueue.objects.using(using).filter(name__in=wanted).values_list("name", flat=True)
    )
    return [name for name in wanted if name not in known]


def untaken_queues(using: str, takers: Takers, *, most: int) -> list[tuple[str | None, str]]:
    """Return tenant and name of the queues that no worker takes, with jobs or without.

    Reads the `most` newest ones that are not retired, and the names that tasks of this process
    declare, which no tenant may have yet (None).
    """
    settings = get_settings()
    if takers.take_all and not settings.executors:
        return []
    rows = TenantQueue.objects.using(using).filter(retired=False).order_by("-pk")
    known = [
        (tenant, name, executor or "")
        for tenant, name, executor in rows.values_list("tenant", "name", "executor")[:most]
    ]
    found: list[tuple[str | None, str]] = sorted(q[:2] for q in known if not takers.take(*q))
    options = [task.options for task in registered_tasks().values()]
    declared = {one.queue for one in options if one.queue} - {name for _, name, _ in known}
    found += [
        (None, name)
        for name in sorted(declared)
        if not takers.take(None, name, settings.executor_of(name) or "")
    ]
    return found


def loads(using: str, queue_ids: Iterable[int]) -> dict[int, QueueLoad]:
    """Return how many jobs of each queue run and wait, each counted up to COUNTED_TO."""
    found = count_queues(using, sorted(queue_ids), running=COUNTED_TO, waiting=COUNTED_TO)
    return {load.queue_id: load for load in found}


def sum_of_slots(using: str) -> int:
    """Return the slots of all queues that are not paused and have a limit."""
    return _limited(using).aggregate(all=Sum("num_slots"))["all"] or 0


def sum_of_taken_slots(using: str) -> int:
    """Return how many of these slots are taken, up to TOTAL_COUNTED_TO.

    Index: tenantqueue_job_slots, which is as small as the fleet.
    """
    jobs = Job.objects.using(using).active().order_by()
    taken = Counter(jobs.values_list("queue_id", flat=True)[:TOTAL_COUNTED_TO])
    return sum(
        taken[pk] for pk in _limited(using).filter(pk__in=taken).values_list("pk", flat=True)
    )


def count_taken(using: str, queue_ids: Collection[int]) -> int:
    """Return how many slots of these queues are taken, up to TOTAL_COUNTED_TO."""
    jobs = Job.objects.using(using).active().filter(queue_id__in=queue_ids).order_by()
    return len(jobs.values_list("pk", flat=True)[:TOTAL_COUNTED_TO])


def _limited(using: str) -> QuerySet[TenantQueue]:
    return TenantQueue.objects.using(using).filter(paused=False, num_slots__isnull=False)


def seconds_to_start(using: str, queue: TenantQueue) -> float | None:
    """Return when the rate of a queue allows its next start: 0 is now; None: it has no rate."""
    rate, burst = queue.max_per_second, queue.burst_size
    if rate is None or burst is None:
        return None
    rows = QueueRate.objects.using(using).filter(pk=queue.pk)
    for debt, age in rows.values_list("debt", Now() - F("as_of")):
        left: float = burst - max(0.0, min(debt, burst) - rate * max(0.0, age.total_seconds()))
        return max(0.0, (1 - left) / rate)
    return 0.0
