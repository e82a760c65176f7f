"""States of a job and the transitions between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class State(TextChoices):
    """The states of a job. The first five are unfinished, the last three final."""

    SCHEDULED = "scheduled", _("scheduled")
    HELD = "held", _("held")
    READY = "ready", _("ready")
    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    SUCCESS = "success", _("success")
    ERROR = "error", _("error")
    CANCELLED = "cancelled", _("cancelled")


ELSEWHERE = {
    "aborted": State.CANCELLED,
    "canceled": State.CANCELLED,
    "complete": State.SUCCESS,
    "completed": State.SUCCESS,
    "created": State.READY,
    "discarded": State.CANCELLED,
    "done": State.SUCCESS,
    "executing": State.RUNNING,
    "failed": State.ERROR,
    "failure": State.ERROR,
    "finished": State.SUCCESS,
    "pending": State.READY,
    "retryable": State.SCHEDULED,
    "started": State.RUNNING,
    "succeeded": State.SUCCESS,
    "successful": State.SUCCESS,
}
"""What other systems call the states."""


def state_meant(text: str) -> str:
    """Return which state is meant by another system's word, as a part of a sentence, or \"\"."""
    meant = ELSEWHERE.get(text.lower())
    return "" if meant is None else f", use {meant.value!r}"


FINAL = frozenset({State.SUCCESS, State.ERROR, State.CANCELLED})
WAITING = frozenset({State.SCHEDULED, State.HELD, State.READY})
ACTIVE = frozenset({State.QUEUED, State.RUNNING})
UNFINISHED = WAITING | ACTIVE

TRANSITIONS: dict[State, frozenset[State]] = {
    State.SCHEDULED: frozenset({State.READY, State.HELD, State.CANCELLED}),
    State.HELD: frozenset({State.READY, State.SCHEDULED, State.CANCELLED}),
    State.READY: frozenset({State.QUEUED, State.SCHEDULED, State.HELD, State.CANCELLED}),
    State.QUEUED: frozenset(
        {
            State.RUNNING,
            State.READY,
            State.SCHEDULED,
            State.HELD,
            State.SUCCESS,
            State.ERROR,
            State.CANCELLED,
        }
    ),
    State.RUNNING: frozenset(
        {State.READY, State.SCHEDULED, State.SUCCESS, State.ERROR, State.CANCELLED}
    ),
    State.SUCCESS: frozenset(),
    State.ERROR: frozenset({State.READY, State.HELD}),
    State.CANCELLED: frozenset({State.READY, State.HELD}),
}
"""What may follow what. Out of a final state only an operator's retry leads."""


class Priority:
    """Named priorities: a lower number runs first.

    Three kinds of origin (administrator, end user, system), each high, middle, low;
    add or subtract up to 2 for fine tuning.
    """

    ADMIN_HIGH = 120
    ADMIN = 220
    ADMIN_LOW = 320
    USER_HIGH = 140
    USER = 240
    USER_LOW = 340
    SYSTEM_HIGH = 160
    SYSTEM = 260
    SYSTEM_LOW = 360
    HIGH = USER_HIGH
    LOW = USER_LOW
    DEFAULT = USER
    LOWEST_NUMBER = -32768
    HIGHEST_NUMBER = 32767


MOST_ATTEMPTS = 32_767
"""The largest number of the columns that count attempts."""
CENTURY = timedelta(days=36_525)
"""The longest time from now for `run_at` and `expires_at`."""
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Bounds of times that users give: those between them can be shown in every time zone."""
