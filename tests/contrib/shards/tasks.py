"""Tasks that run in workers of shards."""

from __future__ import annotations

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
