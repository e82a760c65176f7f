"""The job bodies that every peer runs, as tasks."""

import work

from django_tenantqueue import task


@task
async def noop() -> None:
    """Do nothing."""


@task
async def stamp(number: int) -> None:
    """Write when the job began."""
    work.stamp(number)


@task
async def slow(number: int) -> None:
    """Take five seconds."""
    await work.aslow(number)


@task
async def tenant(number: int) -> None:
    """Take five milliseconds for one tenant."""
    await work.atenant(number)
