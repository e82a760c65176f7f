"""Surveys: where ready jobs begin, while the server cannot clean up.

A transaction that is held open (a report, a dump) keeps the server from removing the index entries
of jobs that have gone since. A claim that starts from the least id of each place reads them all.
When claims have become costly by that, the worker surveys where ready jobs begin, and its claims
start from there. See docs/explanation/claim.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from ..queries.claim import ClaimRequest, Look
from ..queries.survey import Survey, Taken
from .places import Places

COSTLY_ENTRIES = 5000
"""A claim that has read more index entries than this calls for a survey. Twice as many: claims may
take some milliseconds longer before that."""
CHEAP_ENTRIES = 1000
"""A survey that has passed over fewer dead entries than this is the last one."""
AGAIN_SECONDS = 1.0
"""Time without surveys after the last one. It doubles each time, up to CROWDED_SECONDS."""
CROWDED_SECONDS = 10.0
"""Time without surveys when there are more than MOST_PLACES."""
MOST_PLACES = 2000
"""Places with ready jobs that a survey returns at most."""
SURVEY_SHARE = 0.1
"""Part of one core that the surveys of all workers may take. Half: jobs that become ready out of
order are found in twice the time."""
LEAST_SURVEY_SECONDS = 0.25
MOST_SURVEY_SECONDS = 10.0
"""Shortest and longest time between two surveys of a worker that is awake."""
SURVEY_TIMEOUT = 2.0
"""Seconds after which a survey is cancelled. It doubles each time, up to MOST_SURVEY_TIMEOUT."""
MOST_SURVEY_TIMEOUT = 60.0
FAILED_FACTOR = 10.0
"""After a cancelled survey, the next one waits for this multiple of its timeout."""
TAKEN_SECONDS = 6.0
"""How long an answer of find_first_taken.sql is used. With LINE_SECONDS, the wait of a claim at the
turnstile, it is less than TAKEN_MARGIN_SECONDS."""
FIRST_PAUSE_SECONDS = 0.002
MOST_PAUSE_SECONDS = 0.1
"""First and longest pause between looks before a sleep. Each is twice as long as the one before."""
PAUSING_WORKERS = 16
"""With more workers awake than this, the longest pause grows in proportion."""


class Surveys:
    """When one worker surveys, and since when it knows slots to be taken."""

    def __init__(self, clock: Callable[[], float], places: Places) -> None:
        self._clock = clock
        self._places = places
        self._is_wanted = False
        self._survey_at = 0.0
        self._surveyed_at = 0.0
        self._spacing = LEAST_SURVEY_SECONDS
        self._least_spacing = 0.0
        self._sleep_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS
        self._longest_pause = MOST_PAUSE_SECONDS
        self._not_before = 0.0
        self._failures = 0
        self._in_vain = 0
        self._taken: dict[int, tuple[float, Taken]] = {}

    @property
    def is_active(self) -> bool:
        """Whether claims start from what surveys have found."""
        return self._places.by_ids

    @property
    def is_due(self) -> bool:
        """Whether to survey now."""
        now = self._clock()
        if self._not_before > now:
            return False
        return self._is_wanted or (self.is_active and self._survey_at <= now)

    @property
    def timeout(self) -> float:
        """How long a survey may take (seconds)."""
        return min(MOST_SURVEY_TIMEOUT, SURVEY_TIMEOUT * 2.0**self._failures)

    def surveyed(self, survey: Survey, *, seconds: float) -> None:
        """Take what a survey found that took so long."""
        now = self._clock()
        self._is_wanted = False
        self._failures = 0
        if len(survey.places) >= MOST_PLACES:
            self.leave(CROWDED_SECONDS)
            return
        if survey.entries - len(survey.places) < CHEAP_ENTRIES:
            # what is living costs, too: not over and over
            seconds_off = min(CROWDED_SECONDS, AGAIN_SECONDS * 2.0**self._in_vain)
            self._in_vain = 0 if self.is_active else min(10, self._in_vain + 1)
            self.leave(seconds_off)
            return
        self._in_vain = 0
        begins = not self.is_active
        self._places.survey(survey)
        self._surveyed_at = now
        # never more than one core for all, however many they are
        self._least_spacing = seconds * max(1, survey.awake)
        wanted = max(LEAST_SURVEY_SECONDS, self._least_spacing / SURVEY_SHARE)
        self._spacing = max(self._least_spacing, min(MOST_SURVEY_SECONDS, wanted))
        # the first does not see what is being committed, by ids that it takes for seen
        distance = LEAST_SURVEY_SECONDS if begins else self._spacing
        self._survey_at = now + distance * random.uniform(0.75, 1.25)
        self._longest_pause = MOST_PAUSE_SECONDS * max(1.0, survey.awake / PAUSING_WORKERS)

    def hurry(self) -> None:
        """Survey sooner: something became ready out of order, or may have."""
        if self.is_active:
            distance = max(self._least_spacing, self._spacing / 4)
            self._survey_at = min(self._survey_at, self._surveyed_at + distance)

    def failed(self) -> None:
        """Go on as before: a survey took too long, or could not be made."""
        self._is_wanted = False
        self._not_before = self._clock() + FAILED_FACTOR * self.timeout
        self._failures = min(10, self._failures + 1)

    def leave(self, seconds: float = AGAIN_SECONDS) -> None:
        """Do without surveys, for so long at least."""
        self._is_wanted = False
        self._survey_at = self._clock() + seconds
        self._taken.clear()
        if self.is_active:
            self._places.read_all()

    # claims

    def fill(self, request: ClaimRequest) -> None:
        """Tell a claim since when slots are taken."""
        now = self._clock()
        for queue_id in [q for q, (at, _) in self._taken.items() if at + TAKEN_SECONDS <= now]:
            del self._taken[queue_id]
        request.taken = {queue_id: taken for queue_id, (_, taken) in self._taken.items()}

    def learn(self, request: ClaimRequest, look: Look, taken: Mapping[int, Taken]) -> None:
        """Take what a claim found."""
        if self.is_active:
            for queue_id, answer in taken.items():
                self._taken[queue_id] = (request.at, answer)
        elif look.entries > COSTLY_ENTRIES and self._clock() >= self._survey_at:
            self._is_wanted = True

    # pauses

    def pause(self) -> float | None:
        """Return how long to wait before the next look; None: the worker may announce its sleep.

        Each sleep leaves dead versions of the worker's row, which cost time as well, and has to
        be followed by a survey.
        """
        if not self.is_active or self._sleep_at <= self._clock():
            return None
        pause, self._pause = self._pause, min(self._longest_pause, 2 * self._pause)
        return pause

    def announced(self) -> None:
        """A sleep was announced: look everywhere once more before it begins."""
        if self.is_active:
            now = self._clock()
            self._survey_at = now
            self._sleep_at = now + self._spacing

    def found_work(self) -> None:
        """Look soon again when there is nothing more."""
        self._pause = FIRST_PAUSE_SECONDS
