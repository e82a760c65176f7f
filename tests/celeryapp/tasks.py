"""Tasks of Celery's, run as they are, and what the tests with real brokers run."""

from __future__ import annotations

import os
import time
from typing import Any

from asgiref.sync import sync_to_async
from celery import current_task, shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection

from django_tenantqueue import current_job, task
from tests.testapp.models import Effect
from tests.testapp.tasks import begin_interval, end_interval


@shared_task
def plus(a: int, b: int = 1) -> int:
    """Return the sum."""
    return a + b


@shared_task(bind=True, max_retries=2, default_retry_delay=0)
def third_time(self: Any) -> list[Any]:
    """Ask for another attempt twice."""
    if self.request.retries < 2:
        raise self.retry(exc=ConnectionError("not yet"))
    return [self.request.retries, self.request.id, current_task.name]


@shared_task(bind=True, max_retries=1, default_retry_delay=0)
def never(self: Any) -> None:
    """Ask for another attempt each time."""
    raise self.retry(exc=ConnectionError("never"))


@shared_task(autoretry_for=(ConnectionError,), retry_kwargs={"max_retries": 3, "countdown": 0})
def by_itself(attempt: int) -> int:
    """Raise what is retried until this attempt."""
    if current_job().attempt < attempt:
        raise ConnectionError("again")
    return current_job().attempt


@shared_task
def breaks() -> None:
    """Raise what is not retried."""
    raise ValueError("it is broken")


@shared_task(soft_time_limit=0.3)
def too_long() -> str:
    """Run for too long, and notice it."""
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(0.01)
    except SoftTimeLimitExceeded:
        return "stopped"
    return "not stopped"


@task(queue="celery")
def where() -> dict[str, Any]:
    """Return what the run sees of itself."""
    job = current_job()
    return {"pid": os.getpid(), "tenant": job.tenant, "queue": job.queue, "attempt": job.attempt}


@task(queue="celery", max_attempts=50)
def busy(key: str, milliseconds: float) -> None:
    """Write the interval of a run that takes so long."""
    row_id = begin_interval(key)
    time.sleep(milliseconds / 1000)
    end_interval(row_id)


@task(queue="celery", max_attempts=3)
def hang_once() -> int:
    """Hang in the first run; return the pid of a later one."""
    if current_job().attempt == 1:
        time.sleep(600)
    return os.getpid()


@task(queue="celery")
async def coroutine(value: int) -> int:
    """Return the argument, as a coroutine."""
    return value


@task(queue="celery")
async def leave_setting(value: str) -> str:
    """Return a setting of the session as it was found, and leave another value."""

    def swap() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('tests.left', true)")
            found = cursor.fetchone()[0]
            cursor.execute("SELECT set_config('tests.left', %s, false)", [value])
        return found or ""

    return await sync_to_async(swap)()


@task(queue="celery", max_attempts=50, atomic=True)
def effect(note: str) -> None:
    """Write a row in the transaction that also stores the success."""
    Effect.objects.create(job_id=current_job().id, note=note)
