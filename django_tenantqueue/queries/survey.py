"""Where ready jobs begin, found by a look at all of them; and since when slots have been taken.

Used while the server cannot clean up: see operations/surveys.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from .base import array, execute
from .gates import Place

TAKEN_MARGIN_SECONDS = 10.0
"""What is known of taken slots holds if the server's clock is set back by less than this."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Since when slots of a queue have been taken, and when that was read (microseconds)."""

    since: int
    as_of: int


@dataclass(frozen=True, slots=True)
class Survey:
    """Where ready jobs begin, and what it took to find out."""

    places: dict[Place, int]
    """The least id of each."""
    last_id: int
    awake: int
    """Workers that do not sleep."""
    entries: int
    """Index entries that were read."""


def taken_params(taken: Mapping[int, Taken]) -> dict[str, Any]:
    """Return the parameters that say since when slots are taken."""
    return {
        "taken_queues": array(taken),
        "taken_since": array(known.since for known in taken.values()),
        "taken_as_of": max((known.as_of for known in taken.values()), default=0),
    }


def first_taken_params(taken: Mapping[int, Taken]) -> dict[str, Any]:
    """Return the parameters of find_first_taken.sql."""
    return {"margin_seconds": TAKEN_MARGIN_SECONDS, **taken_params(taken)}


def survey_ready(connection: psycopg.Connection[Any], *, most: int, seconds: float) -> Survey:
    """Return where ready jobs begin, for at most `most` places.

    Raises psycopg.errors.QueryCanceled when that takes longer than `seconds`.
    """
    limit = b"SET LOCAL statement_timeout = %d" % int(1000 * seconds)
    try:
        with connection.pipeline():
            prepare = connection.prepare_threshold is not None
            connection.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED", prepare=prepare)
            connection.execute(limit, prepare=prepare)
            cursor = execute(connection, "survey_ready", {"most": most})
            connection.execute(b"COMMIT", prepare=prepare)
    except psycopg.Error:
        if not connection.broken:
            connection.rollback()
        raise
    return as_survey(cursor.fetchone())


def as_survey(row: tuple[Any, ...] | None) -> Survey:
    """Return what the row of survey_ready.sql says."""
    assert row is not None, "an aggregate has one row"
    lanes, queues, priorities, ids, last_id, awake, entries = row
    places = zip(lanes or (), queues or (), priorities or (), strict=True)
    return Survey(dict(zip(places, ids or (), strict=True)), last_id, awake, entries)
