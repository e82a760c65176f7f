"""Surveys: where ready jobs begin, while the server cannot clean up.

A transaction that is held open (a report, a dump) keeps the server from removing the index entries
of finished jobs. A claim that starts from the first id of each place reads all of them. When claims
have become costly, the worker surveys where ready jobs begin, and its claims start from there. See
docs/explanation/claim.md.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg

from ..queries.claim import ClaimRequest, Look
from ..queries.round_trip import TURNSTILE_SECONDS
from ..queries.survey import TAKEN_MARGIN_SECONDS, Survey, Taken, survey_ready
from .places import MOST_STEPS, Places

logger = logging.getLogger("django_tenantqueue")

COSTLY_ENTRIES = 5000
"""Index entries: a claim that reads more calls for a survey."""
MOST_PLACES = MOST_STEPS * 10
"""Most places that a survey returns. A system with more is not surveyed."""
LEAST_SURVEY_SECONDS = 0.25
MOST_SURVEY_SECONDS = LEAST_SURVEY_SECONDS * 40
"""Shortest and longest time between two surveys of a worker: all spend a tenth of a core."""
SURVEY_TIMEOUT = LEAST_SURVEY_SECONDS * 8
"""Seconds after which a survey is cancelled. It doubles with each failure, up to a minute."""


class Surveys:
    """When one worker surveys, and since when it knows slots to be taken."""

    def __init__(self, clock: Callable[[], float], places: Places) -> None:
        self.timeout = SURVEY_TIMEOUT
        """How long a survey may take (seconds)."""
        self._clock = clock
        self._places = places
        self._is_wanted = False
        self._survey_at = 0.0
        self._surveyed_at = 0.0
        self._spacing = LEAST_SURVEY_SECONDS
        self._least_spacing = 0.0
        self._sleep_at = 0.0
        self._not_before = 0.0
        self._taken: dict[int, tuple[float, Taken]] = {}

    @property
    def is_active(self) -> bool:
        """Whether claims start from the least ids that surveys have found."""
        return self._places.by_ids

    @property
    def is_due(self) -> bool:
        """Whether to survey now."""
        now = self._clock()
        is_next = self.is_active and self._survey_at <= now
        return self._not_before <= now and (self._is_wanted or is_next)

    def run_once(self, connection: psycopg.Connection[Any]) -> None:
        """Survey; raise the error of a survey that failed."""
        was_active, began = self.is_active, time.monotonic()
        try:
            with connection.transaction():
                limit = b"SET LOCAL statement_timeout = %d" % int(1000 * self.timeout)
                connection.execute(limit, prepare=False)
                found = survey_ready(connection, MOST_PLACES)
        except psycopg.Error:
            self.failed()
            raise
        self.surveyed(found, seconds=time.monotonic() - began)
        if self.is_active and not was_active:
            logger.info(
                "an open transaction prevents vacuum: claims skip %d index entries of finished "
                "jobs",
                found.dead_entries,
            )
        elif was_active and not self.is_active:
            logger.info("vacuum works again: claims search all ids")

    def surveyed(self, survey: Survey, *, seconds: float) -> None:
        """Learn from a survey that took this long."""
        self._is_wanted = False
        self.timeout = SURVEY_TIMEOUT
        if len(survey.places) >= MOST_PLACES or survey.dead_entries < COSTLY_ENTRIES / 5:
            self.leave()  # living entries cost time, too, and a survey does not change that
            return
        is_first = not self.is_active
        self._not_before = 0.0
        self._places.survey(survey)
        now = self._surveyed_at = self._clock()
        cost = seconds * max(1, survey.awake)
        self._least_spacing = 4 * cost  # all workers together take at most a quarter of a core
        longest = min(MOST_SURVEY_SECONDS, 10 * cost)
        self._spacing = max(LEAST_SURVEY_SECONDS, self._least_spacing, longest)
        # jobs that were being committed during the first survey are found by the second
        distance = LEAST_SURVEY_SECONDS if is_first else self._spacing
        self._survey_at = now + distance * random.uniform(0.75, 1.25)

    def hurry(self) -> None:
        """Survey sooner: a job became ready out of order, or may have."""
        distance = max(self._least_spacing, self._spacing / 4)
        self._survey_at = min(self._survey_at, self._surveyed_at + distance)

    def failed(self) -> None:
        """Continue as before: a survey timed out or failed."""
        self._is_wanted = False
        self._not_before = self._clock() + 10 * self.timeout
        self.timeout = min(60.0, 2 * self.timeout)

    def leave(self) -> None:
        """Read all ids again, and do not survey for some seconds."""
        self._is_wanted = False
        self._not_before = max(self._not_before, self._clock() + MOST_SURVEY_SECONDS)
        self._taken.clear()
        if self.is_active:
            self._places.read_all()

    def fill(self, request: ClaimRequest) -> None:
        """Set for a claim since when slots are taken.

        With the wait at the turnstile, an answer is used for less time than its margin.
        """
        oldest = self._clock() - (TAKEN_MARGIN_SECONDS - TURNSTILE_SECONDS - 1.0)
        for queue_id in [queue_id for queue_id, (at, _) in self._taken.items() if at <= oldest]:
            del self._taken[queue_id]
        request.taken = {queue_id: taken for queue_id, (_, taken) in self._taken.items()}

    def learn(self, request: ClaimRequest, look: Look, taken: Mapping[int, Taken]) -> None:
        """Learn from the answer to a claim."""
        if self.is_active:
            for queue_id, answer in taken.items():
                self._taken[queue_id] = (request.at, answer)
        elif look.entries > COSTLY_ENTRIES:
            self._is_wanted = True

    @property
    def most_pause(self) -> float | None:
        """Longest pause before the next look; None: the worker may announce its sleep.

        Each sleep leaves dead versions of the worker's row, which cost time as well, and has to
        be followed by a survey.
        """
        if not self.is_active or self._sleep_at <= self._clock():
            return None
        return min(self._spacing, MOST_SURVEY_SECONDS) / 10

    def announced(self) -> None:
        """Survey once more: a sleep was announced and is about to begin."""
        if self.is_active:
            self._survey_at = self._clock()
            self._sleep_at = self._survey_at + self._spacing
