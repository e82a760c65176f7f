"""How operators end worker processes."""

from __future__ import annotations

from collections.abc import Iterable

from ..conf import alias_of
from ..models import Worker
from ..models.worker import Role
from .tuning import switch_rows


def drain(worker_ids: Iterable[int], *, using: str | None = None) -> list[int]:
    """Let workers finish their jobs, claim no more and stop; return those that had no such order.

    Supervisors read the order within seconds.
    """
    return _order("draining", worker_ids, using)


def stop(worker_ids: Iterable[int], *, using: str | None = None) -> list[int]:
    """Drain workers, and return jobs that still run after their shutdown timeout.

    Return those that had no such order. Supervisors read the order within seconds.
    """
    return _order("stopping", worker_ids, using)


def _order(column: str, worker_ids: Iterable[int], using: str | None) -> list[int]:
    alias = alias_of(using)
    # the executor's own means end a runner
    chosen = Worker.objects.filter(pk__in=list(worker_ids)).exclude(role=Role.RUNNER)
    return [worker.pk for worker in switch_rows(alias, chosen, {column: True})]
