"""Fixtures for pytest, which loads this module by itself. They need pytest-django and its `db`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .models import Job


class NoOtherMigrations:
    """The setting MIGRATION_MODULES by which no app has migrations but this one."""

    def __contains__(self, app_label: str) -> bool:
        return app_label != "tenantqueue"

    def __getitem__(self, app_label: str) -> None:
        return None


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Exempt this package from `--no-migrations` of pytest-django: only they make the
    partitions."""
    if not getattr(config.option, "nomigrations", False):
        return
    from django.conf import ENVIRONMENT_VARIABLE, settings

    if settings.configured or os.environ.get(ENVIRONMENT_VARIABLE):
        config.option.nomigrations = False
        settings.MIGRATION_MODULES = NoOtherMigrations()


@pytest.fixture
def tenantqueue(db: None) -> Any:
    """Return the module django_tenantqueue.testing, with access to the database."""
    from . import testing

    return testing


@pytest.fixture
def run_jobs(tenantqueue: Any) -> Callable[..., list[Job]]:
    """Return run_pending()."""
    found: Callable[..., list[Job]] = tenantqueue.run_pending
    return found


@pytest.fixture
def eager_jobs() -> Iterator[None]:
    """Run tasks where they would be enqueued, in the whole test."""
    from .testing import eager

    with eager():
        yield
