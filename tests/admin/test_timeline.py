"""What happened to a job, in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_tenantqueue.admin.timeline import make_timeline
from django_tenantqueue.models import Change, Job
from django_tenantqueue.states import State

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def told(now: float = 1000, **columns: Any) -> list[tuple[str, str, str]]:
    """Return (event, what followed, how long) of a job."""
    values: dict[str, Any] = {
        "created_at": START,
        "run_at": START,
        "state": State.READY,
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


def failed(end: float, seconds: float, attempt: int = 1) -> dict[str, Any]:
    return {"at": at(end).isoformat(), "attempt": attempt, "class": "Boom", "seconds": seconds}


def test_every_attempt_has_its_start_and_end() -> None:
    assert told(
        state=State.ERROR, attempt=2, max_attempts=2, errors=[failed(5, 2), failed(15, 4, 2)],
        queued_at=at(10), started_at=at(11.2), finished_at=at(15.1),
    ) == [
        ("created", "waited", "3 s"),
        ("started, attempt 1 of 2", "ran", "2 s"),
        ("attempt 1 failed", "waited for the next attempt", "5 s"),
        ("queued", "handed to a thread", "1 s"),
        ("started, attempt 2 of 2", "ran", "4.1 s"),
        ("error", "", ""),
    ]  # fmt: skip


def test_start_is_before_the_error_when_its_end_was_stored_late() -> None:
    """The row's start is the time of the store without the run: later than the error itself."""
    events = told(
        state=State.ERROR, max_attempts=1, errors=[failed(5, 0)], queued_at=at(4.9),
        started_at=at(5.1), finished_at=at(5.1),
    )  # fmt: skip

    assert [event[0] for event in events] == [
        "created",
        "queued",
        "started, attempt 1 of 1",
        "error",
    ]


def change(seconds: float, action: str, actor: str = "grace") -> Change:
    return Change(made_at=at(seconds), action=action, actor=actor, source="admin")


def test_retry_of_an_operator_is_an_event_and_the_time_before_it_no_wait() -> None:
    job = Job(
        created_at=START,
        run_at=START,
        state=State.SUCCESS,
        attempt=2,
        max_attempts=3,
        errors=[failed(5, 2)],
        queued_at=at(105),
        started_at=at(106),
        finished_at=at(110),
    )

    rows = make_timeline(job, changes=[change(100, "retry")]).rows

    assert [(row.event.label, row.span.label if row.span else "") for row in rows] == [
        ("created", "waited"),
        ("started, attempt 1 of 3", "ran"),
        ("attempt 1 failed", "had ended"),
        ("retried by grace (admin)", "waited"),
        ("queued", "handed to a thread"),
        ("started, attempt 2 of 3", "ran"),
        ("success", ""),
    ]


def test_other_changes_are_events_that_leave_what_the_job_does() -> None:
    job = Job(created_at=START, run_at=START, state=State.READY, attempt=0, max_attempts=3)

    changes = [change(10, "set_priority"), change(20, "move", "")]
    rows = make_timeline(job, at(30), changes).rows

    assert [(row.event.label, row.span.label if row.span else "") for row in rows] == [
        ("created", "waited"),
        ("priority changed by grace (admin)", "waited"),
        ("moved by admin", "waited"),
        ("now", ""),
    ]


def test_cancellation_is_told_once_when_it_is_known_who_asked() -> None:
    job = Job(
        created_at=START,
        run_at=START,
        state=State.RUNNING,
        attempt=1,
        max_attempts=3,
        queued_at=at(1),
        started_at=at(1),
        cancel_requested_at=at(5),
    )

    labels = [row.event.label for row in make_timeline(job, at(6), [change(5, "cancel")]).rows]

    assert labels[-2:] == ["cancelled by grace (admin)", "now"]


@pytest.mark.parametrize("seconds", [-1, 1e30, "x", None, float("nan")])
def test_error_that_raw_sql_wrote_shows_no_start(seconds: Any) -> None:
    error = {**failed(5, 0), "seconds": seconds}

    labels = [event[0] for event in told(state=State.SCHEDULED, errors=[error], run_at=at(2000))]

    assert labels == ["created", "attempt 1 failed", "now", "due"]


def test_enqueueing_again_is_no_part_of_what_the_job_did() -> None:
    def change(seconds: float, action: str, **after: Any) -> Change:
        return Change(
            made_at=at(seconds), action=action, source="admin", before={"job": 1}, after=after
        )

    error = {"at": at(10).isoformat(), "attempt": 1, "class": "E", "seconds": 8}
    job = Job(
        id=1,
        created_at=START,
        run_at=START,
        state=State.SUCCESS,
        attempt=1,
        max_attempts=3,
        errors=[error],
        queued_at=at(31),
        started_at=at(32),
        finished_at=at(40),
    )
    changes = [
        change(50, "enqueue_again", job=3),
        change(30, "retry", state="ready"),
        change(20, "enqueue_again", job=2),
    ]

    timeline = make_timeline(job, at(60), changes)

    assert [
        (row.event.label, row.event.other_job, row.span and row.span.label) for row in timeline.rows
    ] == [
        ("created", None, "waited"),
        ("started, attempt 1 of 3", None, "ran"),
        ("attempt 1 failed", None, "had ended"),
        ("enqueued again by admin as", 2, None),
        ("retried by admin", None, "waited"),
        ("queued", None, "handed to a thread"),
        ("started, attempt 1 of 3", None, "ran"),
        ("success", None, None),
        ("enqueued again by admin as", 3, None),
    ]
