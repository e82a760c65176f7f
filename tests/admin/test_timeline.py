"""What happened to a job, in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_tenantqueue.admin.timeline import make_timeline
from django_tenantqueue.models import Job
from django_tenantqueue.states import State

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def told(now: float = 1000, **columns: Any) -> list[tuple[str, str, str]]:
    """Return (event, what followed, how long) of a job."""
    values: dict[str, Any] = {
        "created_at": START,
        "run_at": START,
        "state": State.CREATED,
        "attempt": 1,
        "max_attempts": 3,
        **columns,
    }
    rows = make_timeline(Job(**values), at(now)).rows
    return [
        (row.event.label, row.span.label if row.span else "", row.span.text if row.span else "")
        for row in rows
    ]


def test_finished_job() -> None:
    assert told(state=State.SUCCESS, queued_at=at(2), started_at=at(2.1), finished_at=at(5)) == [
        ("created", "waited", "2 s"),
        ("queued", "handed to a thread", "100 ms"),
        ("started, attempt 1 of 3", "ran", "2.9 s"),
        ("success", "", ""),
    ]


def test_retried_job() -> None:
    errors = [
        {"at": at(10).isoformat(), "attempt": 1, "class": "ValueError"},
        {"at": "nonsense", "attempt": 2},
    ]
    assert told(
        state=State.RUNNING, attempt=2, errors=errors, run_at=at(15), queued_at=at(16),
        started_at=at(17), now=20,
    ) == [
        ("created", "waited and ran", "10 s"),
        ("attempt 1 failed", "waited for the next attempt", "5 s"),
        ("due", "waited", "1 s"),
        ("queued", "handed to a thread", "1 s"),
        ("started, attempt 2 of 3", "ran", "3 s"),
        ("now", "", ""),
    ]  # fmt: skip


def test_scheduled_job_has_the_present_before_its_time() -> None:
    assert told(state=State.SCHEDULED, run_at=at(60), now=20) == [
        ("created", "waited", "20 s"),
        ("now", "not due yet", "40 s"),
        ("due", "", ""),
    ]


def test_job_asked_to_stop() -> None:
    events = told(
        state=State.RUNNING, queued_at=at(1), started_at=at(1), cancel_requested_at=at(5), now=6
    )

    assert events[-2:] == [("asked to stop", "ran on", "1 s"), ("now", "", "")]


@pytest.mark.parametrize("now", [-5, 0])
def test_clock_behind_the_database(now: float) -> None:
    assert told(now=now) == [("created", "waited", "0 ms"), ("now", "", "")]
