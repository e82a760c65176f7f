"""The queues that have ready or active jobs: of all tenants by one bounded walk, or of some."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..models import TenantQueue
from ..queries.control import QueueLoad, count_queues
from ..queries.fleet import BusyQueue, list_busy_queues
from .display_limits import COUNTED_TO, TOTAL_COUNTED_TO, VISITED
from .job_pages import queue_ids


@dataclass(frozen=True, slots=True)
class Busy:
    """The queues that have ready or active jobs, the longest wait first.

    `capped`: there are more than one walk reads.
    """

    queues: Sequence[BusyQueue]
    capped: bool

    @property
    def waiting(self) -> list[BusyQueue]:
        """Those with ready jobs."""
        return [queue for queue in self.queues if queue.wait_seconds is not None]


def walk_busy(
    using: str, *, listed: int = VISITED, startable: int = COUNTED_TO, blocked: int = 0
) -> Busy:
    """Return the busy queues of all tenants, as far as one bounded walk finds them.

    Those with active jobs alone are left out from the `listed`-th queue on. Counts up to
    `startable` jobs that lack nothing but a worker, and up to `blocked` jobs for each reason.
    """
    queues = list_busy_queues(
        using,
        listed=listed,
        visits=VISITED,
        active=TOTAL_COUNTED_TO,
        startable=startable,
        blocked=blocked,
    )
    return Busy(queues, any(queue.capped for queue in queues) or len(queues) >= VISITED)


def busy_of_tenants(using: str, tenants: Collection[str]) -> Busy:
    """Return the busy ones among VISITED queues of these tenants; their jobs are not counted."""
    ids = queue_ids(using, tenants=tenants)
    return Busy(read_busy(using, ids[:VISITED]), len(ids) > VISITED)


def read_busy(using: str, ids: Sequence[int]) -> list[BusyQueue]:
    """Return the busy ones of these queues; their active jobs are counted up to COUNTED_TO."""
    found = count_queues(using, ids, running=COUNTED_TO, waiting=0)
    return busy_among(using, found)


def busy_among(using: str, loads: Iterable[QueueLoad], *, idle: bool = False) -> list[BusyQueue]:
    """Return the busy ones of the queues that have these loads, the longest wait first.

    With `idle` the others follow them.
    """
    busy = {x.queue_id: x for x in loads if idle or x.running or x.wait_seconds is not None}
    rows = TenantQueue.objects.using(using).filter(pk__in=busy).order_by()
    columns = rows.values_list("pk", "tenant", "name", "executor", "num_slots", "weight", "paused")
    found = [
        BusyQueue(
            pk,
            tenant,
            name,
            executor or "",
            num_slots,
            weight,
            paused,
            active=busy[pk].running,
            wait_seconds=busy[pk].wait_seconds,
        )
        for pk, tenant, name, executor, num_slots, weight, paused in columns
    ]
    return sorted(
        found, key=lambda q: (q.wait_seconds is None, -(q.wait_seconds or 0.0), -q.active, q.id)
    )
