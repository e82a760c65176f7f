"""Tasks of the test app."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django.db import connection

from django_tenantqueue import Permanent, Retry, current_job, task

BEGIN = """
    INSERT INTO testapp_interval (job_id, key, attempt, started_at)
    VALUES (%s, %s, %s, clock_timestamp()) RETURNING id
"""
END = "UPDATE testapp_interval SET ended_at = clock_timestamp() WHERE id = %s"


def begin_interval(key: str) -> int:
    """Write that a run begins; return the row's id."""
    job = current_job()
    with connection.cursor() as cursor:
        cursor.execute(BEGIN, [job.id, key, job.attempt])
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def end_interval(row_id: int) -> None:
    """Write that a run ends."""
    with connection.cursor() as cursor:
        cursor.execute(END, [row_id])


@task
def noop() -> None:
    """Do nothing."""


@task
async def async_noop() -> None:
    """Do nothing, as a coroutine."""


@task
def add(first: int, second: int = 0) -> int:
    """Return the sum."""
    return first + second


@task
async def async_add(first: int, second: int = 0) -> int:
    """Return the sum after giving way once."""
    await asyncio.sleep(0)
    return first + second


@task
def refuse(*args: Any, **kwargs: Any) -> None:
    """Raise ValueError with any arguments."""
    raise ValueError("refused")


@task
def echo(value: Any) -> Any:
    """Return the argument."""
    return value


@task
def work(key: str, milliseconds: float = 0.0) -> None:
    """Write the interval of a run that takes so long."""
    row_id = begin_interval(key)
    time.sleep(milliseconds / 1000)
    end_interval(row_id)


@task(max_attempts=3, backoff=0.05)
def fail(message: str = "it failed") -> None:
    """Raise ValueError."""
    raise ValueError(message)


@task(max_attempts=3)
def fail_for_good() -> None:
    """Raise Permanent."""
    raise Permanent("there is no use in trying again")


@task(max_attempts=3)
def fail_until(attempt: int, after: float = 0.0) -> str:
    """Ask for another attempt until this one."""
    if current_job().attempt < attempt:
        raise Retry(after=after)
    return f"succeeded in attempt {current_job().attempt}"


@task
def report_progress(steps: int, pause: float = 0.0) -> int:
    """Report progress and statistics."""
    job = current_job()
    for step in range(steps):
        job.progress(step + 1, steps, f"step {step + 1}")
        job.stats["rows"] = step + 1
        time.sleep(pause)
    return steps


@task
def spin(seconds: float) -> None:
    """Compute without looking at anything."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(100))


@task
async def async_sleep(seconds: float) -> None:
    """Sleep in the event loop."""
    await asyncio.sleep(seconds)


@task(atomic=True)
def write_effect(note: str, error: bool = False) -> str:
    """Write a row in the transaction that also stores the success."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO testapp_effect (job_id, note) VALUES (%s, %s)", [current_job().id, note]
        )
    if error:
        raise Permanent("undo it")
    return note


@task
def whoami() -> dict[str, Any]:
    """Return what the run sees of itself."""
    from django.utils import timezone, translation

    from django_tenantqueue import get_tenant

    job = current_job()
    return {
        "tenant": get_tenant(),
        "queue": job.queue,
        "attempt": job.attempt,
        "language": translation.get_language(),
        "time_zone": timezone.get_current_timezone_name(),
    }


def _told(monitor: Any, summary: Any, failed: list[int]) -> dict[str, Any]:
    return {
        "monitor": None if monitor is None else [monitor.id, monitor.label, monitor.is_callback],
        "counts": None
        if summary is None
        else [summary.total, summary.succeeded, summary.failed, summary.cancelled],
        "seconds": None
        if summary is None or summary.duration is None
        else summary.duration.total_seconds(),
        "failed": failed,
    }


@task
def tell_monitor() -> dict[str, Any]:
    """Return what the job is told of its monitor."""
    job = current_job()
    summary = job.summary
    return _told(job.monitor, summary, list(summary.failed_ids()) if summary else [])


@task
async def async_tell_monitor() -> dict[str, Any]:
    """Return what the job is told of its monitor, as a coroutine."""
    job = current_job()
    summary = await job.asummary()
    failed = [job_id async for job_id in summary.afailed_ids()] if summary else []
    return _told(await job.amonitor(), summary, failed)
