"""Retry or cancel all jobs of one task that failed with errors of one class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from ..batch_sizes import BATCH
from ..calls.sources import RegisteredTask
from ..conf import alias_of
from ..models import Change, TenantQueue
from ..status.failures import WALKED, Group, Walk, figure_name, walk_failed, walk_waiting
from . import control
from .changes import Entry
from .gates import cancel_waiting, release_later
from .tuning import ids_of

MOST = BATCH * 5
"""Jobs that one call changes by default: about half a second."""


@dataclass(frozen=True, slots=True)
class Done:
    """The jobs that a call has changed. `more`: matching jobs remain."""

    ids: Sequence[int]
    more: bool


def retry_failed(
    task: str | RegisteredTask,
    error_class: str,
    since: datetime,
    *,
    queues: Iterable[int] | None = None,
    limit: int = MOST,
    using: str | None = None,
) -> Done:
    """Make jobs of a task ready again that ended in error since `since`, the newest first.

    Their last error is of this class, as `job.last_error["class"]` has it. `queues`: the ids of
    their queues, None: any. It works in steps of BATCH jobs, each a transaction, and leaves one
    entry in the audit log. A job that fails again meanwhile is not retried again. See
    control.retry() for skipped jobs.
    """
    alias = alias_of(using)
    group = _group(task, error_class, since, queues)
    tenant = _tenant_of(alias, group)
    entry = Entry(alias, Change.Action.RETRY, Change.Kind.JOB, group.task, tenant)
    before = {"state": "error", "error": group.error}

    def retry(ids: list[int]) -> list[int]:
        with transaction.atomic(using=alias):
            retried = control.retry(ids, using=alias, recorded=False)
            entry.add(retried, before=before, after={"retried": len(retried)})
        return retried

    return _in_steps(walk_failed, alias, group, limit, retry)


def cancel_failed(
    task: str | RegisteredTask,
    error_class: str,
    *,
    queues: Iterable[int] | None = None,
    limit: int = MOST,
    using: str | None = None,
) -> Done:
    """Cancel jobs of a task that wait after an error of this class, the newest first.

    A job that starts meanwhile is skipped. See retry_failed().
    """
    alias = alias_of(using)
    group = _group(task, error_class, datetime.min.replace(tzinfo=UTC), queues)
    tenant = _tenant_of(alias, group)
    entry = Entry(alias, Change.Action.CANCEL, Change.Kind.JOB, group.task, tenant)
    before = {"error": group.error}

    def cancel(ids: list[int]) -> list[int]:
        with transaction.atomic(using=alias):
            cancelled = cancel_waiting(alias, ids)
            entry.add(cancelled, before=before, after={"cancelled": len(cancelled)})
            release_later(alias, cancelled.values())
        return list(cancelled)

    return _in_steps(walk_waiting, alias, group, limit, cancel)


def _group(
    task: str | RegisteredTask, error: str, since: datetime, queues: Iterable[int] | None
) -> Group:
    chosen = None if queues is None else frozenset(ids_of(queues, TenantQueue))
    name: Any = getattr(task, "name", task)
    return Group(figure_name(name), figure_name(error), since, chosen)


def _tenant_of(using: str, group: Group) -> str:
    if group.queues is None:
        return ""
    queues = TenantQueue.objects.using(using).filter(pk__in=group.queues)
    tenants = list(queues.order_by().values_list("tenant", flat=True).distinct()[:2])
    return tenants[0] or "" if len(tenants) == 1 else ""


def _in_steps(
    walk: Walk, using: str, group: Group, limit: int, change: Callable[[list[int]], list[int]]
) -> Done:
    """Change up to `limit` jobs that a walk finds; it reads WALKED jobs for those of queues."""
    changed: list[int] = []
    found = 0
    for number, ids in enumerate(walk(using, group, step=BATCH), 1):
        chosen = ids[: limit - found]
        if chosen:
            changed += change(chosen)
            found += len(chosen)
        if len(chosen) < len(ids) or (group.queues is not None and number * BATCH >= WALKED):
            return Done(changed, more=True)
    return Done(changed, more=False)
