"""What other tenants run: ordinary tasks, which write that they have run and what they found."""

from __future__ import annotations

import decimal
import signal
import threading
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.utils import timezone, translation

from django_tenantqueue import current_job, get_tenant, task

from .models import Effect

EXPECTED = {
    "tenant": "innocent",
    "language": "en",
    "zone": "UTC",
    "server_zone": "UTC",
    "precision": 28,
    "blocked_signals": 0,
}


def look_around() -> dict[str, Any]:
    """Return what a task finds in its thread and on its connection."""
    with connection.cursor() as cursor:
        # long enough for other threads to take their share, and for a bad statement_timeout
        cursor.execute("SELECT pg_sleep(0.002), current_setting('TimeZone')")
        _, server_zone = cursor.fetchone()
    return {
        "tenant": get_tenant(),
        "language": translation.get_language(),
        "zone": timezone.get_current_timezone_name(),
        "server_zone": server_zone,
        "precision": decimal.getcontext().prec,
        "blocked_signals": len(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "thread": threading.get_ident(),
    }


def write(found: dict[str, Any]) -> None:
    """Write that the job's body has run."""
    Effect.objects.create(job_id=current_job().id, found=found)


@task
def plain() -> None:
    """Write in autocommit mode."""
    write(look_around())


@task
def in_a_transaction() -> None:
    """Write in a transaction, with a savepoint inside, and look for it after the commit."""
    with transaction.atomic(durable=True):
        found = look_around()
        with transaction.atomic():
            write(found)
    assert Effect.objects.filter(job_id=current_job().id).count() == 1


@task(atomic=True)
def with_the_success() -> None:
    """Write in the transaction that stores the success."""
    write(look_around())


@task
async def as_coroutine() -> None:
    """Write by the ORM's asynchronous methods."""
    found = await sync_to_async(look_around)()
    await Effect.objects.acreate(job_id=current_job().id, found=found)


KINDS = (plain, in_a_transaction, with_the_success, as_coroutine)
