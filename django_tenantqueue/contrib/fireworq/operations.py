"""Changes that clients of Fireworq make to queues."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from ...models import TenantQueue
from ...operations import control
from ...operations.tuning import add_row
from . import queries
from .models import FireworqQueue


def put_queue(
    tenant: str,
    name: str,
    *,
    num_slots: int | None,
    max_per_second: float | None,
    burst: int | None,
    polling_interval: int | None,
    using: str,
) -> TenantQueue:
    """Make a queue, or override the definition of an existing one; return it.

    One that was deleted takes and starts jobs again, those that wait there first. Raises Django's
    ValidationError for a bad value.
    """
    columns = {"num_slots": num_slots, "max_per_second": max_per_second, "burst": burst}
    row = TenantQueue(tenant=tenant, name=name, **columns)
    row.clean_fields(exclude=("id", "created_at"))
    rows = TenantQueue.objects.using(using).filter(tenant=tenant, name=name)
    with transaction.atomic(using=using):
        found = rows.first()
        if found is None:
            try:
                add_row(using, row, ("tenant", "name", *columns))
            except IntegrityError:  # another one has made it
                found = rows.get()
        if found is not None:
            back = {"retired": False, "paused": False} if found.retired else {}
            control.tune_queue(found.pk, using=using, **columns, **back)
        queue = rows.get()
        FireworqQueue.objects.using(using).update_or_create(
            pk=queue.pk, defaults={"polling_interval": polling_interval}
        )
    return queue


def delete_queue(queue: TenantQueue, *, using: str) -> None:
    """Let a queue take no new jobs and start none. Jobs that wait stay until it is put again."""
    control.tune_queue(queue.pk, using=using, retired=True, paused=True)


def count_push(queue_id: int, *, using: str) -> None:
    """Count a job that a client has pushed, once the open transaction has committed."""
    transaction.on_commit(lambda: queries.count_push(using, queue_id), using=using, robust=True)
