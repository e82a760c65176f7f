"""Where ready jobs begin, and since when slots have been taken: see operations/surveys.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from ..states import Priority
from .base import array, execute
from .gates import Place

FIRST_PLACE: Place = (Priority.LOWEST_NUMBER, 0, Priority.LOWEST_NUMBER)
"""Before all places."""
TAKEN_MARGIN_SECONDS = 10.0
"""How far the server's clock may be set back before an answer about taken slots is wrong."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Since when slots of a queue have been taken, and when that was read (microseconds)."""

    since: int
    as_of: int


@dataclass(frozen=True, slots=True)
class Survey:
    """Where ready jobs begin, and the cost of the survey."""

    places: dict[Place, int]
    """The first id of each."""
    last_id: int
    awake: int
    """Workers that do not sleep."""
    entries: int
    """Index entries that were read."""

    @property
    def dead_entries(self) -> int:
        """Index entries of jobs that are not ready any more."""
        return self.entries - len(self.places)


def taken_params(taken: Mapping[int, Taken]) -> dict[str, Any]:
    """Return the parameters that say since when slots are taken."""
    return {
        "taken_queues": array(taken),
        "taken_since": array(known.since for known in taken.values()),
        "taken_as_of": max((known.as_of for known in taken.values()), default=0),
    }


def first_taken_params(taken: Mapping[int, Taken]) -> dict[str, Any]:
    """Return the parameters of find_first_taken.sql."""
    return {"by_ids": True, "margin_seconds": TAKEN_MARGIN_SECONDS, **taken_params(taken)}


def survey_params(most: int) -> dict[str, Any]:
    """Return the parameters of survey_ready.sql, for at most `most` places."""
    lane, queue_id, priority = FIRST_PLACE
    return {
        "from_lane": lane,
        "from_queue": queue_id,
        "from_priority": priority,
        "most_steps": most,
    }


def survey_ready(connection: psycopg.Connection[Any], most: int) -> Survey:
    """Return where ready jobs begin, for at most `most` places."""
    row = execute(connection, "survey_ready", survey_params(most)).fetchone()
    assert row is not None, "an aggregate has one row"
    places, last_id, awake, entries = row
    found = {(step[0], step[1], step[2]): step[3] for step in places or ()}
    return Survey(found, last_id, awake, entries)
