"""Claims of jobs that are in no table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_tenantqueue.queries.claim import ClaimedJob


@pytest.fixture
def claimed_job() -> Callable[..., ClaimedJob]:
    """Return a function that makes the claim of job 7, a noop unless it is said otherwise."""

    def make(**changes: Any) -> ClaimedJob:
        values: dict[str, Any] = {
            "id": 7,
            "claim_seq": 1,
            "queue_id": 1,
            "lane": 240,
            "is_async": False,
            "attempt": 1,
            "max_attempts": 5,
            "task": "tests.testapp.tasks.noop",
            "source_type": "task",
            "source_id": "",
            "source_method": "tests.testapp.tasks.noop",
            "args": '{"args": []}',
            "timeout_seconds": None,
            "hard_timeout_seconds": None,
            "expires_at": None,
            "context": None,
            "nth_served": 1,
            "used": 1,
            "weight": 1,
            "slots_left": 0,
        }
        return ClaimedJob(**{**values, **changes})

    return make
