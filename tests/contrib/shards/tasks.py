"""Tasks that run in workers of shards."""

from __future__ import annotations

import os
import time

from django_tenantqueue import current_job, get_tenant, task
from django_tenantqueue.conf import get_settings


@task(name="tests.contrib.shards.pass_on")
def pass_on(*tenants: str) -> str:
    """Enqueue a job of each tenant, and one of none; return the database of the run."""
    current_job().progress(1, 2)
    for tenant in tenants:
        where.using(tenant=tenant).delay()
    where.using(tenant="").delay()
    return get_settings().database


@task(name="tests.contrib.shards.where")
def where() -> list[str]:
    """Return the tenant and the database of the run."""
    return [get_tenant(), get_settings().database]


@task(name="tests.contrib.shards.async_where")
async def async_where() -> str:
    """Return the database of the run, as a coroutine."""
    return get_settings().database


@task(name="tests.contrib.shards.mark", max_attempts=1)
def mark(line: str, number: int, seconds: float) -> None:
    """Write to the file TEST_MARKS when the body begins and ends."""
    _write("begin", line, number)
    time.sleep(seconds)
    _write("end", line, number)


def _write(what: str, line: str, number: int) -> None:
    text = f"{what}\t{line}\t{number}\t{time.time()}\t{get_settings().database}\n"
    handle = os.open(os.environ["TEST_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, text.encode())  # at once, so that lines of processes do not mix
    finally:
        os.close(handle)
