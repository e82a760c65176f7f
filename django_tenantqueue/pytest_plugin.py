"""Fixtures for pytest, which loads this module by itself. They need pytest-django and its `db`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .models import Job


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
