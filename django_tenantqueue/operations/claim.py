"""Requests for claims, and what their answers mean: whose turn is next, and when to look again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ..queries.claim import MOST_ROOM, ClaimRequest, Look
from ..queries.exchange import Exchange
from .passed_over import PassedOver
from .places import BLOCKED_SECONDS, Places
from .surveys import Surveys

ASYNC_SECONDS = 10.0
"""So long after the last coroutine others are expected, and looked for at once."""
UNSEEN_ROOM = 4
"""Room for coroutines while none have been seen, lest a worker of blocking tasks lock many queues
and jobs that it cannot take. It doubles with each claim that fills it, and halves with each that
brings blocking jobs alone."""
CONTENDED_SECONDS = 0.02
"""Longest wait before queues are looked at again that others had locked."""
LEAST_REST_SECONDS = 0.005
"""Shortest wait before queues are looked at again that are full, or beyond their rate."""
MOST_LANES = 64
"""Lanes whose cursor is remembered."""
MOST_LOCKS = 50
"""Queues that one claim locks at most."""


class Verdict(Enum):
    """What a claim has shown."""

    AGAIN = "again"
    """There may be more: claim at once when there is room."""
    LATER = "later"
    """Jobs were found, and as far as the claim saw they were all: look again in a moment."""
    CONTENDED = "contended"
    """Something is ready, but others hold its queue right now: look after `wait_seconds`."""
    BLOCKED = "blocked"
    """Something is ready, but its queues are full, paused or have used up their rates: look after
    `wait_seconds`."""
    EMPTY = "empty"
    """Nothing is ready."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a worker takes; None is everything."""

    queues: list[str] | None = None
    exclude_queues: list[str] | None = None
    tenants: list[str] | None = None


class Claimer:
    """Makes the claim requests of one worker process and learns from their answers."""

    def __init__(
        self,
        worker_id: int,
        filters: Filters | None = None,
        *,
        queue_range: tuple[int, int] = (0, 0),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.worker_id = worker_id
        self.filters = filters or Filters()
        self.wait_seconds = 0.0
        self.places = Places(clock)
        self.surveys = Surveys(clock, self.places)
        self.passed_over = PassedOver(clock)
        self._clock = clock
        self._starts: dict[int, int] = {}
        # if every process started with the same queue, short-lived ones would serve only that
        self._first_start = random.randint(*queue_range)
        self._last = (0, 0, 0)
        self._async_seen_at = -ASYNC_SECONDS
        self._async_room = UNSEEN_ROOM
        self._goes_on = False
        """The last claim has found nothing, and has not seen all."""
        self._began = 0.0

    @property
    def expects_coroutines(self) -> bool:
        """Whether coroutines have been claimed lately."""
        return self._clock() - self._async_seen_at <= ASYNC_SECONDS

    def request(self, room_threads: int, room_async: int) -> ClaimRequest:
        """Return the request for a claim of up to so many jobs of each kind."""
        room_threads = min(room_threads, MOST_ROOM // 2)
        room_async = min(room_async, self._async_room, MOST_ROOM // 2)
        room = room_threads + room_async
        lane, queue, used = self._last
        request = ClaimRequest(
            worker_id=self.worker_id,
            room_threads=room_threads,
            room_async=room_async,
            starts=self._starts,
            first_start=self._first_start,
            last_lane=lane,
            last_queue=queue,
            last_used=used,
            most_locks=min(room if self.expects_coroutines else room_threads or room, MOST_LOCKS),
            queues=self.filters.queues,
            exclude_queues=self.filters.exclude_queues,
            tenants=self.filters.tenants,
            start_keys=self.passed_over.start_keys,
        )
        now = self._clock()
        if not self._goes_on:
            self._began = now
        self.places.fill(request, goes_on=self._goes_on)
        if request.by_ids:
            self.surveys.fill(request)
        return request

    def finished(self, queue_id: int) -> None:
        """Note that a job of this queue ended here: it may have a free slot now."""
        self.places.finished(queue_id)

    def notified(self) -> None:
        """Note that there may be something new."""
        self.places.notified()

    def forget_blocked(self) -> None:
        """Look at every queue again."""
        self.places.forget_blocked()

    def learn(self, request: ClaimRequest, answer: Exchange) -> Verdict:
        """Remember what the answer to `request` shows, and say what to do next."""
        look = answer.look
        assert look is not None, "the answer belongs to a request"
        self.places.learn(request, look)
        self.surveys.learn(request, look, answer.taken)
        if look.has_controls:
            self.passed_over.note({(lane, queue_id) for lane, queue_id, _ in look.held_places})
        self._adapt_async_room(answer)
        self._remember_turns(answer)
        if answer.jobs:
            self._goes_on = False
            return Verdict.LATER if self._has_taken_all(request, answer, look) else Verdict.AGAIN
        # locked, yet nothing was taken: no executor of its kind, or full by the later count
        is_misfit = min(request.room_threads, request.room_async) == 0
        for queue_id in look.held:
            self.places.rest_barren(queue_id, is_misfit=is_misfit)
        self._goes_on = self.places.is_searching or self.places.has_open
        if self._goes_on:
            return Verdict.AGAIN
        if self.places.has_contended:
            self.wait_seconds = random.uniform(0.1, 1.0) * CONTENDED_SECONDS
            return Verdict.CONTENDED
        # a search of many places is followed by a rest in proportion
        rest = min(BLOCKED_SECONDS, self._clock() - self._began)
        self.wait_seconds = max(LEAST_REST_SECONDS, rest, self.places.wait_seconds)
        return Verdict.BLOCKED if self.places.has_blocked else Verdict.EMPTY

    def _adapt_async_room(self, answer: Exchange) -> None:
        """Ask for twice as many coroutines when all came that were asked for, else for fewer."""
        taken = sum(job.is_async for job in answer.jobs)
        if taken >= self._async_room:
            self._async_room = min(MOST_ROOM // 2, 2 * self._async_room)
        elif answer.jobs and not taken:
            self._async_room = max(UNSEEN_ROOM, self._async_room // 2)

    def _remember_turns(self, answer: Exchange) -> None:
        for job in answer.jobs:
            if job.is_async:
                self._async_seen_at = self._clock()
            unfinished = job.used % job.weight
            self._starts[job.lane] = job.queue_id - 1 if unfinished else job.queue_id
            self._last = (job.lane, job.queue_id, unfinished)
        while len(self._starts) > MOST_LANES:
            del self._starts[next(iter(self._starts))]

    def _has_taken_all(self, request: ClaimRequest, answer: Exchange, look: Look) -> bool:
        """Whether a claim has left nothing ready that it could have taken, as far as it tells.

        A queue that was locked may have more, for it takes turns with others; not if it was alone,
        or has no more slots.
        """
        if self.places.is_searching or look.locks >= request.most_locks or look.contended:
            return False
        if request.is_filled_by(answer.jobs):
            return False
        left = {job.queue_id: job.slots_left for job in answer.jobs}
        return len(look.held) == 1 or not any(left.get(queue_id, 1) for queue_id in look.held)
