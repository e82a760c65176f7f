"""Where a claim looks that does not walk over the queues, and the survey that finds such places.

What they are for: operations/recall.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from .base import array, execute
from .gates import QueuePriority

MOST_ARRIVALS = 2000
"""Jobs that a claim which recalls looks for by their ids, at most."""
TAKEN_MARGIN_SECONDS = 10.0
"""Clocks may be set back by so much: see find_first_taken.sql."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Since when slots of a queue have been taken, and when that was told (microseconds)."""

    since: int
    as_of: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where a claim looks that does not walk over the queues: see operations/recall.py."""

    at: float
    """Monotonic time."""
    floors: Mapping[QueuePriority, int]
    """The least ids at which something may be ready."""
    arrivals_from: int
    taken: Mapping[int, Taken]
    withheld: int
    """Spots that are not looked at since their queues are left alone."""
    is_cut: bool = False
    """There are more spots than one claim looks at."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Where ready jobs begin, and what it took to find out."""

    floors: dict[QueuePriority, int]
    last_id: int
    awake: int
    walked: int


def taken_params(places: Places) -> dict[str, Any]:
    """Return the parameters that say since when slots are taken."""
    return {
        "taken_queues": array(places.taken),
        "taken_from": array(taken.since for taken in places.taken.values()),
        "taken_as_of": max((taken.as_of for taken in places.taken.values()), default=0),
    }


def first_taken_params(places: Places) -> dict[str, Any]:
    """Return the parameters of find_first_taken.sql."""
    return {"margin_seconds": TAKEN_MARGIN_SECONDS, **taken_params(places)}


def places_params(places: Places) -> dict[str, Any]:
    """Return the parameters that say where to look."""
    return {
        **taken_params(places),
        "floor_lanes": array(lane for lane, _, _ in places.floors),
        "floor_queues": array(queue_id for _, queue_id, _ in places.floors),
        "floor_priorities": array(priority for _, _, priority in places.floors),
        "floor_ids": array(places.floors.values()),
        "arrivals_from": places.arrivals_from,
        "most_arrivals": MOST_ARRIVALS,
    }


def survey_ready(connection: psycopg.Connection[Any], *, most: int, seconds: float) -> Survey:
    """Return where ready jobs begin, of up to `most` lanes, queues and priorities.

    Raises psycopg.errors.QueryCanceled when that takes longer than so many seconds.
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
    lanes, queues, priorities, ids, last_id, awake, walked = row
    spots = zip(lanes or (), queues or (), priorities or (), strict=True)
    return Survey(dict(zip(spots, ids or (), strict=True)), last_id, awake, walked)
