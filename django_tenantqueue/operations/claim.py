"""Requests for claims, and the use of their answers: the next turn, and the next look."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ..queries.claim import MOST_ROOM, ClaimRequest, Look
from ..queries.round_trip import Exchange
from .passed_over import PassedOver
from .places import BLOCKED_SECONDS, DISPATCH_SECONDS, SHORT_REST_SECONDS, Places
from .surveys import Surveys

LEAST_ASYNC_ROOM = 4
"""Room for coroutines in a claim while none come."""
LATELY_SECONDS = 1.0
"""For how long coroutines are expected after some have come."""
MOST_LOCKS = MOST_ROOM // 4
"""Most queues that one claim locks, and most lanes whose turn is remembered."""


class Verdict(Enum):
    """The result of a claim, which decides when to claim next."""

    AGAIN = "again"
    """There may be more: claim at once when there is room."""
    LATER = "later"
    """Jobs were found, and no more are ready as far as the claim saw: look again in a moment."""
    CONTENDED = "contended"
    """Jobs are ready, but other sessions hold their queues: look again after `wait_seconds`."""
    BLOCKED = "blocked"
    """Jobs are ready, but their queues are full, paused or beyond their rates: look again after
    `wait_seconds`."""
    EMPTY = "empty"
    """Nothing is ready."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The queues and tenants that a worker takes; None is all. `executor`: None is the workers."""

    queues: list[str] | None = None
    exclude_queues: list[str] | None = None
    tenants: list[str] | None = None
    executor: str | None = None


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
        blocked_seconds = DISPATCH_SECONDS if self.filters.executor else BLOCKED_SECONDS
        self.places = Places(clock, blocked_seconds)
        self.surveys = Surveys(clock, self.places)
        self.passed_over = PassedOver(clock)
        self.left_tasks: Sequence[str] = ()
        self.left_jobs: Sequence[int] = ()
        """Tasks and jobs that are left to other workers."""
        self.leaves_jobs = False
        """The last claim met a queue whose ready jobs are all left to others."""
        self._clock = clock
        self._starts: dict[int, int] = {}
        # if every process started with the same queue, short-lived ones would serve only that
        self._first_start = random.randint(*queue_range)
        self._last = (0, 0, 0)
        self._coroutines_at = -math.inf
        self._goes_on = False
        """The last claim found nothing, and has not looked at all places."""
        self._began = 0.0

    @property
    def expects_coroutines(self) -> bool:
        """Whether coroutines have been claimed lately."""
        return self._clock() - self._coroutines_at < LATELY_SECONDS

    def request(self, room_threads: int, room_async: int) -> ClaimRequest:
        """Return the request for a claim of at most this many jobs of each kind."""
        room_threads = min(room_threads, MOST_ROOM // 2)
        most_async = MOST_ROOM // 2 if self.expects_coroutines else LEAST_ASYNC_ROOM
        room_async = min(room_async, most_async)
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
            executor=self.filters.executor,
            left_tasks=self.left_tasks,
            left_jobs=self.left_jobs,
            start_keys=self.passed_over.start_keys,
        )
        if not self._goes_on:
            self._began = self._clock()
        self.places.fill(request, goes_on=self._goes_on)
        if request.by_ids:
            self.surveys.fill(request)
        return request

    def learn(self, request: ClaimRequest, answer: Exchange) -> Verdict:
        """Learn from the answer to `request`, and return what to do next."""
        look = answer.look
        assert look is not None, "the answer belongs to a request"
        self.places.learn(request, look)
        self.surveys.learn(request, look, answer.taken)
        if look.has_controls:
            self.passed_over.note({(lane, queue_id) for lane, queue_id, _ in look.held_places})
        leaves = bool(request.left_tasks or request.left_jobs)
        served = {job.queue_id for job in answer.jobs}
        self.leaves_jobs = (
            leaves and not request.is_filled_by(answer.jobs) and bool(look.held - served)
        )
        if answer.jobs:
            if any(job.is_async for job in answer.jobs):
                self._coroutines_at = self._clock()
            self._remember_turns(answer)
            if self.leaves_jobs:
                for queue_id in look.held - served:
                    self.places.block(queue_id)
            self._goes_on = False
            return Verdict.LATER if self._has_taken_all(request, answer, look) else Verdict.AGAIN
        # locked, yet nothing was taken: no room for its kind, full by the later count, or all of
        # its jobs are left to other workers
        is_misfit = min(request.room_threads, request.room_async) == 0
        for queue_id in look.held:
            if leaves and not is_misfit:
                self.places.block(queue_id)
            else:
                self.places.rest_barren(queue_id, is_misfit=is_misfit)
        self._goes_on = self.places.is_searching or self.places.has_open
        if self._goes_on:
            return Verdict.AGAIN
        if self.places.has_contended:
            self.wait_seconds = random.uniform(0.1, 1.0) * SHORT_REST_SECONDS
            return Verdict.CONTENDED
        # a search of many places is followed by a rest in proportion
        rest = min(BLOCKED_SECONDS, self._clock() - self._began)
        self.wait_seconds = max(SHORT_REST_SECONDS / 4, rest, self.places.wait_seconds)
        return Verdict.BLOCKED if self.places.has_blocked else Verdict.EMPTY

    def _remember_turns(self, answer: Exchange) -> None:
        for job in answer.jobs:
            unfinished = job.used % job.weight
            self._starts[job.lane] = job.queue_id - 1 if unfinished else job.queue_id
            self._last = (job.lane, job.queue_id, unfinished)
        while len(self._starts) > MOST_LOCKS:
            del self._starts[next(iter(self._starts))]

    def _has_taken_all(self, request: ClaimRequest, answer: Exchange, look: Look) -> bool:
        """Whether a claim has left nothing ready that it could have taken, as far as it saw.

        A locked queue may have more, because it takes turns with others. It has none if it was
        alone, or has no more slots.
        """
        if self.places.is_searching or look.locks >= request.most_locks or look.contended:
            return False
        if request.is_filled_by(answer.jobs):
            return False
        left = {job.queue_id: job.slots_left for job in answer.jobs}
        return len(look.held) == 1 or not any(left.get(queue_id, 1) for queue_id in look.held)
