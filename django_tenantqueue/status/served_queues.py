"""Which queues the workers serve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Now

from ..models import TenantQueue, Worker
from ..models.worker import SILENT, Role

Filter = tuple[Sequence[str], Sequence[str], Sequence[str], str]


@dataclass(frozen=True, slots=True)
class Takers:
    """The queues that live workers serve which neither drain nor stop, and those of dispatchers.

    `filters`: (queues, excluded, tenants, executor, which is "" of a worker).
    """

    filters: Sequence[Filter]

    @classmethod
    def of(cls, workers: Iterable[Worker]) -> Takers:
        """Return what these workers and dispatchers serve."""
        return cls.once((w.queues, w.exclude_queues, w.tenants, w.executor) for w in workers)

    @classmethod
    def once(cls, filters: Iterable[Filter]) -> Takers:
        """Return what workers with these filters serve; those that several have are kept once."""
        return cls(list({(tuple(a), tuple(b), tuple(c), own) for a, b, c, own in filters}))

    @property
    def take_all(self) -> bool:
        """Whether some worker takes the jobs of all queues without an executor."""
        return any(not any(names) for names in self.filters)

    def take(self, tenant: str | None, name: str, executor: str) -> bool:
        """Return whether some worker takes the jobs of a queue.

        tenant None: of any tenant. `executor`: that of the queue, "" for none.
        """
        return any(
            (not queues or name in queues)
            and name not in excluded
            and (tenant is None or not tenants or tenant in tenants)
            and executor == own
            for queues, excluded, tenants, own in self.filters
        )

    def serve(self, queue: TenantQueue) -> bool:
        """Return whether some worker takes the jobs of a queue."""
        return self.take(queue.tenant, queue.name, queue.executor or "")


def going_on(using: str) -> QuerySet[Worker]:
    """Return the workers and dispatchers that are alive and take jobs."""
    alive = Worker.objects.using(using).filter(heartbeat_at__gt=Now() - SILENT)
    return alive.filter(draining=False, stopping=False).exclude(role=Role.RUNNER)


def read_takers(using: str) -> Takers:
    """Read which queues the workers serve."""
    rows = going_on(using).order_by()
    return Takers.once(rows.values_list("queues", "exclude_queues", "tenants", "executor"))
