"""Erases a tenant: all rows about it, in every table, in bounded steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings as django_settings
from django.core.cache import caches
from django.db import transaction
from django.db.models import Model, QuerySet

from ..batch_sizes import BATCH
from ..exceptions import InvalidOption, InvalidState
from ..features import Feature, hooks
from ..gate_keys import gate_key
from ..models import (
    Change,
    ConcurrentJobMonitor,
    Figure,
    Job,
    MonitorAddition,
    MonitorPace,
    Mute,
    QueueRate,
    Session,
    TenantQueue,
    UniqueKey,
)
from ..models.job_query import JobQuerySet
from ..states import ACTIVE
from ..status.display_limits import READ
from . import control
from .changes import Entry
from .erasure_elsewhere import find_bulk_jobs, forget_elsewhere, forget_follow_ups
from .queues import forget_queues

Ids = Sequence[int]

TABLES: dict[type[Model], str] = {
    Job: "queue_id__in",
    UniqueKey: "key__startswith",
    MonitorAddition: "monitor__tenant",
    MonitorPace: "monitor__tenant",
    ConcurrentJobMonitor: "tenant",
    Session: "tenant",
    Figure: "queue_id__in",
    QueueRate: "queue_id__in",
    Change: "tenant",
    Mute: "tenant",
    TenantQueue: "tenant",
}
"""How the rows of a tenant are found in each table of the core, in the order of deletion."""


def tables() -> dict[type[Model], str]:
    """Return the lookup of a tenant's rows in each table, in the order of deletion.

    The tables of features come first: some of them make jobs.
    """
    found: dict[type[Model], str] = {}
    for hook in hooks(Feature.tenant_tables):
        found |= hook()
    return found | TABLES


def rows_of(using: str, model: type[Model], tenant: str, queues: Ids) -> list[QuerySet[Any]]:
    """Return the rows of a tenant in a table that are deleted. `queues`: the ids of its queues."""
    lookup = tables()[model]
    value = {"queue_id__in": queues, "key__startswith": gate_key(tenant, "")}.get(lookup, tenant)
    rows = model._default_manager.using(using).filter(**{lookup: value})
    if isinstance(rows, JobQuerySet):
        bulk = find_bulk_jobs(using, tenant, queues, final=True)
        return [
            rows.unfinished().exclude(state__in=sorted(ACTIVE)),
            rows.finished(),
            Job.objects.using(using).finished().filter(pk__in=bulk),
        ]
    return [rows]


def close_tenant(using: str, tenant: str, *, stop: bool = False) -> None:
    """Pause and retire all queues of a tenant, and stop the enqueuing of jobs of it.

    `stop`: ask running jobs to stop. Raises InvalidState when jobs run and `stop` is false, and
    InvalidOption for no tenant.
    """
    if not tenant:
        raise InvalidOption("tenant='': the jobs without a tenant are not erased")
    with transaction.atomic(using=using):
        queues = TenantQueue.objects.using(using).filter(tenant=tenant)
        ids = [queue.pk for queue in queues.order_by("pk").select_for_update()]
        active = _active(using, tenant, ids)
        if active and not stop:
            raise InvalidState(
                f"{len(active)} jobs of tenant {tenant!r}, or bulk actions that may act on them, "
                "have not ended: wait for them, or stop them (--stop)"
            )
        queues.update(paused=True, retired=True)
        for hook in hooks(Feature.close_tenant):
            hook(using, tenant)


def _active(using: str, tenant: str, queue_ids: Ids) -> list[int]:
    """Return the jobs of these queues that run, and the unfinished bulk actions of others."""
    jobs = Job.objects.using(using).active().filter(queue_id__in=queue_ids)
    bulk = find_bulk_jobs(using, tenant, queue_ids, final=False)
    return [*jobs.order_by().values_list("pk", flat=True), *bulk]


def erase_tenant(
    tenant: str,
    *,
    using: str,
    stop: bool = False,
    wait: float | timedelta = 60.0,
    tell: Callable[[str, int], bool | None] = lambda table, rows: None,
) -> dict[str, int]:
    """Delete all rows about a tenant; return their numbers by table. It can be repeated.

    Its queues are paused and retired first. `stop`: ask running jobs to stop, and wait for them to
    end for up to `wait`, seconds or a timedelta. Bulk actions on its jobs, or on those of all
    tenants, are treated like its jobs. It is also removed from rows about others. `tell` is called
    after each step; when it returns True, the other rows stay. One entry of the audit log has the
    number of rows, without the tenant. Raises InvalidState while jobs run, and InvalidOption for no
    tenant.
    """
    close_tenant(using, tenant, stop=stop)
    queues = TenantQueue.objects.using(using).filter(tenant=tenant)
    ids = list(queues.order_by("pk").values_list("pk", flat=True))
    seconds = wait.total_seconds() if isinstance(wait, timedelta) else wait
    _end_jobs(using, tenant, ids, time.monotonic() + seconds if stop else 0.0)
    forget_elsewhere(using, tenant)
    report = dict.fromkeys((model._meta.db_table for model in tables()), 0)
    for table, count in _delete_all(using, tenant, ids):
        report[table] += count
        if tell(table, report[table]):
            break
    forget_queues()
    with transaction.atomic(using=using):
        entry = Entry(using, Change.Action.ERASE, Change.Kind.QUEUE)
        entry.add(ids, after={table: count for table, count in report.items() if count})
    return report


def _delete_all(using: str, tenant: str, queue_ids: Ids) -> Iterator[tuple[str, int]]:
    """Delete all rows of a tenant in steps; yield the table and the number of rows of each step."""
    # twice: jobs of other tenants enqueue what follows them until the queues are gone
    for model in [*tables()] * 2:
        if model is TenantQueue:
            forget_follow_ups(using, queue_ids)
        for rows in rows_of(using, model, tenant, queue_ids):
            for count in _delete(using, rows):
                yield model._meta.db_table, count


def _end_jobs(using: str, tenant: str, queue_ids: Ids, until: float) -> None:
    """Wait until no job of these queues runs. Raises InvalidState after `until`."""
    while active := _active(using, tenant, queue_ids):
        if time.monotonic() >= until:
            raise InvalidState(
                f"{len(active)} jobs of tenant {tenant!r}, or bulk actions that may act on them, "
                "have not ended: its queues are paused and retired. Try again when they have ended"
            )
        control.cancel(active, using=using, recorded=False)
        time.sleep(0.2)


def _delete(using: str, rows: QuerySet[Any]) -> Iterable[int]:
    keys = rows.order_by()
    while found := list(keys.values_list("pk", flat=True)[:READ]):
        for start in range(0, len(found), BATCH):
            chosen = rows.model._default_manager.using(using).filter(
                pk__in=found[start : start + BATCH]
            )
            if rows.model is Job:
                _forget_results(chosen)
            yield int(chosen.order_by()._raw_delete(using))


def _forget_results(jobs: QuerySet[Job]) -> None:
    of_cache: dict[str, list[str]] = {}
    for ref in jobs.exclude(result_ref=None).values_list("result_ref", flat=True):
        alias, _, key = str(ref).partition(":")
        of_cache.setdefault(alias, []).append(key)
    for alias in of_cache.keys() & django_settings.CACHES.keys():
        caches[alias].delete_many(of_cache[alias])
