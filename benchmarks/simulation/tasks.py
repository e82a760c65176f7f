"""The tasks of the simulated jobs. Nothing runs them: a virtual worker lets their time pass."""

from __future__ import annotations

from django_tenantqueue import task


@task(name="simulation.work")
def work(seconds: float, is_small: bool) -> None:
    """Take this long; `is_small`: the tenant is not one of the large ones."""


@task(name="simulation.news")
def news(seconds: float, is_small: bool) -> None:
    """Do the same; only workers of the second deploy have this task."""
