"""Where to look while the server cannot clean up: what a worker remembers instead of walking.

A transaction that is held open (a report, a dump) keeps the server from removing the index entries
of jobs that have gone since. A claim that walks over the queues reads them all, again and again.
So a worker whose claims have become costly by that surveys once where ready jobs begin, and from
then on hands these places in; what is put in later it reads by its ids. What becomes ready
elsewhere, a retry or a job that a gate let through, is found by the next survey: these follow each
other at a distance that keeps their cost a small part of one core. See docs/explanation/claim.md.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Collection, Mapping

from ..queries.claim import Walk
from ..queries.gates import QueuePriority
from ..queries.recall import Places, Survey, Taken

COSTLY_ENTRIES = 5000
"""A walk that has read more index entries than this is a reason to recall."""
CHEAP_ENTRIES = 1000
"""A survey that has passed over fewer of them than this is a reason to walk again."""
AGAIN_SECONDS = 1.0
CROWDED_SECONDS = 10.0
"""So long a worker walks at least, then: twice as long each time, up to what it is when there are
too many spots to remember."""
MOST_SPOTS = 2000
"""Lanes, queues and priorities with ready jobs that are remembered. When there are more, a worker
walks."""
MOST_PLACES = 500
"""So many of them one claim looks at."""
SURVEY_SHARE = 0.1
"""What the surveys of all workers that are awake may take of one core."""
FIRST_IDS = 1000
"""So many of the last ids the claims after the first survey look at, too."""
LEAST_SURVEY_SECONDS = 0.25
MOST_SURVEY_SECONDS = 10.0
"""Shortest and longest time between two surveys of a worker that is awake."""
SURVEY_TIMEOUT = 2.0
MOST_SURVEY_TIMEOUT = 60.0
"""Seconds after which a survey is given up; each time twice as many, up to the most."""
FAILED_FACTOR = 10.0
"""There is no other for so many times as long."""
AWAY_SECONDS = 15.0
"""A worker that has looked at no ids for longer does not go through all that passed meanwhile."""
NO_ARRIVALS = 2**63 - 1
"""An id that no job reaches."""
ARRIVAL_SECONDS = 1.0
"""Jobs whose ids are younger than this are looked for by their ids: their transactions may have
committed in another order. What commits later still is found by a survey."""
TAKEN_SECONDS = 6.0
"""So long it is believed, and LINE_SECONDS more by a claim that waits in line: less than
TAKEN_MARGIN_SECONDS, so that a clock set back by more than these is noticed (see
lock_recalled_queues.sql)."""
FIRST_PAUSE_SECONDS = 0.002
MOST_PAUSE_SECONDS = 0.1
"""Pauses between looks before a sleep, each twice as long as the last."""
PAUSING_WORKERS = 16
"""When more workers than this are awake, the longest pause grows in proportion."""


class Recall:
    """What one worker remembers of where jobs are ready, and since when slots are taken."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.is_active = False
        self._clock = clock
        self._is_wanted = False
        self._survey_at = 0.0
        self._surveyed_at = 0.0
        self._spacing = LEAST_SURVEY_SECONDS
        self._sleep_at = 0.0
        self._pause = FIRST_PAUSE_SECONDS
        self._longest_pause = MOST_PAUSE_SECONDS
        self._floors: dict[QueuePriority, int] = {}
        self._not_before = 0.0
        self._failures = 0
        self._in_vain = 0
        self._least_spacing = 0.0
        self._looked_at = 0.0
        self._seen: deque[tuple[float, int]] = deque()
        """Times, and the largest ids that were known then."""
        self._taken: dict[int, tuple[float, Taken]] = {}

    # surveys

    @property
    def is_survey_due(self) -> bool:
        """Whether to survey now."""
        now = self._clock()
        if self._not_before > now:
            return False
        return self._is_wanted or (self.is_active and self._survey_at <= now)

    @property
    def survey_timeout(self) -> float:
        """How long a survey may take (seconds)."""
        return min(MOST_SURVEY_TIMEOUT, SURVEY_TIMEOUT * 2.0**self._failures)

    def walked(self, walk: Walk) -> None:
        """Take what a claim that walked has read."""
        if walk.walked > COSTLY_ENTRIES and self._clock() >= self._survey_at:
            self._is_wanted = True

    def surveyed(self, survey: Survey, *, seconds: float) -> None:
        """Take what a survey found that took so long."""
        now = self._clock()
        self._is_wanted = False
        self._failures = 0
        if len(survey.floors) >= MOST_SPOTS:
            self.leave(CROWDED_SECONDS)
            return
        if survey.walked - len(survey.floors) < CHEAP_ENTRIES:
            # what is living costs, too: not over and over
            seconds_off = min(CROWDED_SECONDS, AGAIN_SECONDS * 2.0**self._in_vain)
            self._in_vain = 0 if self.is_active else min(10, self._in_vain + 1)
            self.leave(seconds_off)
            return
        self._in_vain = 0
        if self._seen and survey.last_id < self._seen[-1][1]:
            self._seen.clear()  # the sequence was set back
        begins = not (self.is_active and self._seen)
        self.is_active = True
        self._surveyed_at = now
        # never more than one core for all, however many they are
        self._least_spacing = seconds * max(1, survey.awake)
        wanted = max(LEAST_SURVEY_SECONDS, self._least_spacing / SURVEY_SHARE)
        self._spacing = max(self._least_spacing, min(MOST_SURVEY_SECONDS, wanted))
        # the first does not see what is being committed, by ids that it takes for seen
        distance = LEAST_SURVEY_SECONDS if begins else self._spacing
        self._survey_at = now + distance * random.uniform(0.75, 1.25)
        self._longest_pause = MOST_PAUSE_SECONDS * max(1.0, survey.awake / PAUSING_WORKERS)
        self._floors = survey.floors
        if begins:  # some of the last ids may belong to what is being committed
            self._see(max(0, survey.last_id - FIRST_IDS), now)
            self._looked_at = now
        self._see(survey.last_id, now)

    def hurry(self) -> None:
        """Survey sooner: something became ready out of order, or may have."""
        if self.is_active:
            distance = max(self._least_spacing, self._spacing / 4)
            self._survey_at = min(self._survey_at, self._surveyed_at + distance)

    def failed(self) -> None:
        """Go on as before: a survey took too long, or could not be made."""
        self._is_wanted = False
        self._not_before = self._clock() + FAILED_FACTOR * self.survey_timeout
        self._failures = min(10, self._failures + 1)

    def lower(self, places: Mapping[QueuePriority, int]) -> None:
        """Take where jobs became ready out of order."""
        if self.is_active:
            for spot, job_id in places.items():
                self._floors[spot] = min(job_id, self._floors.get(spot, job_id))

    def leave(self, seconds: float = AGAIN_SECONDS) -> None:
        """Walk again, for so long at least."""
        self.is_active = self._is_wanted = False
        self._survey_at = self._clock() + seconds
        self._floors = {}
        self._seen.clear()
        self._taken.clear()

    # claims

    def places(self, skipped: Collection[int], starts: Mapping[int, int], first: int) -> Places:
        """Return where the next claim is to look; `skipped`: queues that are left alone.

        `starts`, `first`: the turns, see ClaimRequest.
        """
        now = self._clock()
        is_away = self._looked_at + AWAY_SECONDS <= now
        if is_away:
            self._survey_at = now
        left_alone = set(skipped)
        spots = [spot for spot in self._floors if spot[1] not in left_alone]
        withheld = len(self._floors) - len(spots)
        is_cut = len(spots) > MOST_PLACES
        if is_cut:
            spots.sort(key=lambda spot: _place_in_line(spot, starts, first))
            del spots[MOST_PLACES:]
        for queue_id in [q for q, (at, _) in self._taken.items() if at + TAKEN_SECONDS <= now]:
            del self._taken[queue_id]
        return Places(
            at=now,
            floors={spot: self._floors[spot] for spot in spots},
            arrivals_from=NO_ARRIVALS if is_away else self._seen[0][1] + 1,
            taken={queue_id: taken for queue_id, (_, taken) in self._taken.items()},
            withheld=withheld,
            is_cut=is_cut,
        )

    def learn(self, places: Places, walk: Walk, taken: Mapping[int, Taken]) -> None:
        """Take what a claim found that looked at `places`."""
        if not self.is_active:
            return
        for spot, job_id in walk.recalled.items():
            if spot not in places.floors and spot in self._floors:
                # only what came last was looked at here: the spot was withheld, or cut off
                self._floors[spot] = min(self._floors[spot], job_id or self._floors[spot])
            elif job_id is None:
                self._floors.pop(spot, None)
            else:
                self._floors[spot] = job_id
        now = self._looked_at = self._clock()
        if walk.arrivals_cut or places.arrivals_from == NO_ARRIVALS:
            self._seen.clear()  # go on behind them at once
            self.hurry()
        # what was seen a second before a look has been looked at twice
        while len(self._seen) > 1 and self._seen[1][0] + ARRIVAL_SECONDS <= places.at:
            self._seen.popleft()
        self._see(walk.last_arrival, now)
        for queue_id, answer in taken.items():
            self._taken[queue_id] = (places.at, answer)

    def _see(self, job_id: int, now: float) -> None:
        if not self._seen or job_id > self._seen[-1][1]:
            self._seen.append((now, job_id))

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


def _place_in_line(
    spot: QueuePriority, starts: Mapping[int, int], first: int
) -> tuple[int, bool, int, int]:
    lane, queue_id, priority = spot
    return lane, queue_id <= starts.get(lane, first), queue_id, priority
