"""The same bodies as functions of Django's task framework."""

from django import VERSION

if VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


@task
async def noop_async() -> None:
    """Do nothing, as a coroutine."""


@task
def noop_sync() -> None:
    """Do nothing, in a thread."""
