"""All jobs of a tenant as lines of JSON, read while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from django.db import connections, transaction

from ..batch_sizes import SMALL_BATCH
from ..models import Job, TenantQueue
from .masking import masked_columns
from .stored_rows import Column, json_rows, stored_columns


def export_jobs(using: str, tenant: str) -> Iterator[tuple[int, str]]:
    """Yield the jobs of a tenant in chunks: how many they are, and their lines.

    One cursor of the server reads them, so that each job is there once, in the state that it had
    at the beginning. Secret values are masked. There is no order.
    """
    queues = TenantQueue.objects.using(using).filter(tenant=tenant)
    names = dict(queues.values_list("pk", "name"))
    own = stored_columns(Job)
    attributes = [column.attribute for column in own]
    columns = [*own, Column("tenant", "tenant"), Column("queue", "queue")]
    jobs = Job.objects.using(using).filter(queue_id__in=list(names)).order_by()
    options = connections[using].settings_dict
    kept = options.get("DISABLE_SERVER_SIDE_CURSORS", False)
    with transaction.atomic(using=using):
        # behind a pooler, too, a cursor lives as long as its transaction
        options["DISABLE_SERVER_SIDE_CURSORS"] = False
        try:
            found = jobs.values_list(*attributes).iterator(chunk_size=SMALL_BATCH)
            while chunk := list(islice(found, SMALL_BATCH)):
                rows = []
                for row in chunk:
                    values = dict(zip(attributes, row, strict=True))
                    queue = names[values["queue_id"]]
                    rows.append((*masked_columns(values).values(), tenant, queue))
                yield len(rows), json_rows(columns, rows)
        finally:
            options["DISABLE_SERVER_SIDE_CURSORS"] = kept
