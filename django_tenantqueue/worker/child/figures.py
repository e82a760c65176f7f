"""What happened to the jobs of one process since its last heartbeat."""

from __future__ import annotations

import json
from collections import defaultdict

import psycopg

from ...conf import get_settings
from ...execution.current_job import RunningJob
from ...execution.outcome import Outcome
from ...histogram import place
from ...queries.figures import LONGEST, UNNAMED, Counts, Key, add_figures, with_totals
from ...states import State
from ...text import clean_text


class Figures:
    """Counts the starts and ends of one process's jobs, and adds them to the minute figures.

    A process that is killed takes along what it has counted since its last heartbeat.
    """

    def __init__(self) -> None:
        self._counts: defaultdict[Key, Counts] = defaultdict(Counts)

    def started(self, running: RunningJob) -> None:
        """Count the start of a run, once."""
        if not running._counted and running._started is not None:
            running._counted = True
            job = running._claimed
            self._counts[job.queue_id, job.task[:LONGEST], ""].started += 1

    def ended(self, running: RunningJob, outcome: Outcome) -> None:
        """Count the end of a run, and its start; neither of a job that expired or is given back."""
        has_expired = outcome.finished is not None and outcome.finished.age_seconds is None
        if outcome.give_back is None and not has_expired:
            self.started(running)
        claimed = running._claimed
        name = claimed.task[:LONGEST]
        counts = self._counts[claimed.queue_id, name, ""]
        if outcome.finished is not None:
            state = outcome.finished.state
        elif outcome.failed is not None:
            state = RETRIED
        elif outcome.stored:
            state = State.SUCCESS.value
        else:
            return
        _count(counts, state)
        if running._started is not None:
            waited = max(0.0, claimed.waited_seconds + running._started - running._claimed_at)
            counts.wait_seconds += waited
            _count_in(counts.waits, waited)
            counts.run_seconds += running.age_seconds
            _count_in(counts.runs, running.age_seconds)
        record = outcome.finished or outcome.failed
        if record is not None and state in (State.ERROR, RETRIED):
            of_error = self._counts[claimed.queue_id, name, _error_class(record.extra)]
            _count(of_error, state)
            of_error.last_job_id = claimed.id

    def forget(self) -> None:
        """Drop what was counted."""
        self._counts.clear()

    def store(self, connection: psycopg.Connection[object]) -> None:
        """Add what was counted to the figures of this minute."""
        if self._counts and get_settings().figures:
            add_figures(connection, with_totals(self._counts))
        self._counts.clear()


RETRIED = "retried"
COLUMNS = {
    State.SUCCESS.value: "succeeded",
    State.ERROR.value: "failed",
    State.CANCELLED.value: "cancelled",
    RETRIED: "retried",
}


def _error_class(extra: str | None) -> str:
    """Return the class of the error in `extra`, which may hold what the server is to refuse."""
    try:
        return clean_text(json.loads(extra or "")["error"]["class"])[:LONGEST] or UNNAMED
    except (ValueError, KeyError, TypeError, AttributeError):
        return UNNAMED


def _count(counts: Counts, state: str) -> None:
    column = COLUMNS[state]
    setattr(counts, column, getattr(counts, column) + 1)


def _count_in(places: list[int], seconds: float) -> None:
    at = place(seconds)
    if at >= len(places):
        places.extend([0] * (at + 1 - len(places)))
    places[at] += 1
