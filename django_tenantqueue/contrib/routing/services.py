"""Changes of routings.

They apply to jobs that are enqueued later: in this process at once, in others within a second. See
routes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from ...conf import alias_of, get_settings
from ...exceptions import QueueRetired, UnknownQueue
from ...models import TenantQueue
from ...operations.queues import is_declared, near_names
from ...operations.tuning import (
    Ids,
    add_row,
    check_columns,
    delete_rows,
    ids_of,
    lock_rows,
    write_columns,
)
from .models import Routing
from .routes import forget_routes

TUNABLE = ("queue",)
"""Columns of a routing that operators change."""
_ADDED = ("pattern", "queue")


def list_routings(tenant: str | None, *, using: str | None = None) -> list[Routing]:
    """Return the routings of a tenant ("": none) or of every tenant (None), by pattern."""
    return list(Routing.objects.using(alias_of(using)).filter(tenant=tenant))


def make_routing(
    pattern: str, queue: str, *, tenant: str | None = None, using: str | None = None
) -> Routing:
    """Route new jobs whose name matches `pattern` to `queue`; return the new or changed routing.

    `pattern`: a name, with `*` for any text. `tenant`: None is every tenant, "" is for jobs without
    one. Raises UnknownQueue or QueueRetired unless such a queue accepts jobs, and Django's
    ValidationError for a wrong value.
    """
    alias = alias_of(using)
    row = Routing(tenant=tenant, pattern=pattern, queue=queue)
    row.clean_fields(exclude=("id", "created_at"))
    row.clean()
    with transaction.atomic(using=alias):
        rows = Routing.objects.using(alias).select_for_update(no_key=True)
        existing = rows.filter(tenant=tenant, pattern=pattern).first()
        if existing is None:
            try:
                add_routing(row, using=alias)
                return row
            except (IntegrityError, ValidationError):  # another one has made it
                existing = rows.get(tenant=tenant, pattern=pattern)
        _write(alias, [existing], {"queue": queue})
    return existing


def add_routing(row: Routing, *, using: str | None = None) -> None:
    """Check a new row, write it, and record it. Raises what make_routing() raises."""
    alias = alias_of(using)
    row._state.db = alias
    row.full_clean(exclude=("id", "created_at"))
    check_queue(row.tenant, row.queue, using=alias)
    add_row(alias, row, _ADDED)
    _act(alias)


def tune_routing(ids: Ids, *, using: str | None = None, **changes: Any) -> Sequence[int]:
    """Change columns of routings that are TUNABLE; return the ids of the changed ones.

    Raises what make_routing() raises, InvalidOption for an unknown column, Routing.DoesNotExist.
    """
    alias = alias_of(using)
    check_columns(changes, TUNABLE)
    if not changes:
        return []
    with transaction.atomic(using=alias):
        return _write(alias, lock_rows(alias, Routing, ids), changes)


def _write(using: str, rows: Sequence[Routing], changes: Mapping[str, Any]) -> Sequence[int]:
    """Write columns of rows that the open transaction has locked."""
    for tenant in {row.tenant for row in rows}:
        check_queue(tenant, changes["queue"], using=using)
    tuned = write_columns(using, rows, changes)
    _act(using)
    return tuned.changed


def delete_routings(ids: Ids, *, using: str | None = None) -> list[int]:
    """Delete routings; return their ids."""
    alias = alias_of(using)
    found = delete_rows(alias, Routing.objects.filter(pk__in=ids_of(ids, Routing)), _ADDED)
    _act(alias)
    return [row.pk for row in found]


def check_queue(tenant: str | None, queue: str, *, using: str | None = None) -> None:
    """Raise UnknownQueue or QueueRetired unless jobs can be routed to a queue.

    The tenant's queue must exist and accept jobs, or be created at its first use because a task or
    the settings name it. For every tenant (None), one tenant with such a queue is enough, unless
    STRICT_QUEUES keeps it from being created for the others.
    """
    rows = TenantQueue.objects.using(alias_of(using))
    own = rows if tenant is None else rows.filter(tenant=tenant)
    named = own.filter(name=queue)
    is_one = tenant is not None
    if named.filter(retired=False).exists() and (is_one or not get_settings().strict_queues):
        return
    whose = f"tenant {tenant!r} has" if is_one else "there is"
    if tenant is not None and named.exists():
        raise QueueRetired(tenant, queue)
    if is_declared(queue):
        return
    raise UnknownQueue(
        f"{whose} no queue {queue!r}, so no job can be routed to it.{near_names(queue, own)} Add "
        "the queue in the admin, or add its name to TENANTQUEUE['DECLARED_QUEUES']",
        tenant=tenant or "",
        queue=queue,
    )


def _act(using: str) -> None:
    forget_routes()
    transaction.on_commit(forget_routes, using=using, robust=True)
