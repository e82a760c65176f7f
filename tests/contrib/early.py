"""A task that is declared while Django is not set up yet."""

from django import VERSION

if VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


@task
def hello() -> None:
    """Do nothing."""


def hidden() -> None:
    """Do nothing."""


shown = task(hidden)
