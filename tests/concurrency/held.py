"""What jobs leave behind that have come and gone."""

from __future__ import annotations

from django.db import connection

from django_tenantqueue.models import TenantQueue
from tests.factories import make_jobs

GONE = 6000
"""Jobs of a queue that have come and gone: more than COSTLY_ENTRIES."""


def come_and_go(queue: TenantQueue, count: int = GONE, priority: int = 240) -> None:
    """Put jobs in, take them and remove them, each in a transaction of its own."""
    ids = make_jobs(queue, count, priority=priority)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenantqueue_job_hot SET state = 'queued', queued_at = clock_timestamp(), "
            "worker_id = 999999, claim_seq = 1, attempt = 1 WHERE id = ANY (%s)",
            [ids],
        )
        cursor.execute("DELETE FROM tenantqueue_job_hot WHERE id = ANY (%s)", [ids])
