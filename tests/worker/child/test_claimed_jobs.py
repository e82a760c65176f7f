"""Which limits a worker sets to what it runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import override_settings

from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.executors import hard_limit
from django_tenantqueue.queries.claim import ClaimedJob


@pytest.mark.parametrize(
    ("timeout", "hard_timeout", "limit"),
    [
        (None, None, 6 * 3600.0),
        (None, 90.0, 90.0),
        (60.0, 90.0, 90.0),
        (60.0, None, 60.0 + 30.0),
        (100_000.0, None, 100_000.0 + 30.0),
    ],
)
def test_process_is_killed_after_the_own_limit_or_the_default(
    claimed_job: Callable[..., ClaimedJob],
    timeout: float | None,
    hard_timeout: float | None,
    limit: float,
) -> None:
    job = claimed_job(timeout_seconds=timeout, hard_timeout_seconds=hard_timeout)

    assert hard_limit(RunningJob(job)) == limit


@override_settings(TENANTQUEUE={"DEFAULT_HARD_TIMEOUT": None, "HARD_TIMEOUT_GRACE": None})
@pytest.mark.parametrize("timeout", [None, 60.0])
def test_process_is_never_killed_when_the_settings_say_so(
    claimed_job: Callable[..., ClaimedJob], timeout: float | None
) -> None:
    assert hard_limit(RunningJob(claimed_job(timeout_seconds=timeout))) is None


@override_settings(TENANTQUEUE={"DEFAULT_HARD_TIMEOUT": 5.0})
def test_default_holds_only_without_an_own_limit(claimed_job: Callable[..., ClaimedJob]) -> None:
    assert hard_limit(RunningJob(claimed_job())) == 5.0
    assert hard_limit(RunningJob(claimed_job(timeout_seconds=60.0))) == 90.0
