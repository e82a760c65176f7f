"""Whose turn it is: what one worker process remembers between two claims.

The truth is in the rows; this memory only saves work. It holds, for each lane, the queue that was
served last (so that queues take turns), which queues were found full, paused or beyond their rate a
moment ago (so that they are not looked at again before something may have changed), and how far an
unfinished walk has come.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ..queries.claim import MOST_ROOM, ClaimRequest, Exchange, Position, Walk
from .passed_over import PassedOver
from .recall import Recall

BLOCKED_SECONDS = 0.25
"""How long a full or paused queue is left alone, unless one of its jobs finishes here. One that has
used up its rate is left alone until its next start, but no longer than this: it may be edited."""
FOREIGN_SECONDS = 10.0
"""How long a queue that this worker's filters leave out is not looked at."""
BARREN_SECONDS = 0.01
"""How long a queue is left alone that was locked and yielded nothing."""
ASYNC_SECONDS = 10.0
"""So long after the last coroutine others are expected, and looked for at once."""
UNSEEN_ROOM = 4
"""Room for coroutines while none have been seen, lest a worker of blocking tasks lock many queues
and jobs that it cannot take. It doubles with each claim that fills it, and halves with each that
brings blocking jobs alone."""
CONTENDED_SECONDS = 0.02
"""Longest wait before a queue whose row somebody else had locked is looked at again."""
COSTLY_STEPS = 100
"""A walk of more steps makes its fully blocked lanes rest for a while."""
MOST_SKIPPED = 400
"""Queue ids to skip that one statement is given."""
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
        self.recall = Recall(clock)
        self.passed_over = PassedOver(clock)
        self._clock = clock
        self._starts: dict[int, int] = {}
        # were it the same for all, processes that live briefly would serve the first queues only
        self._first_start = random.randint(*queue_range)
        self._last = (0, 0, 0)
        self._blocked: dict[int, float] = {}
        self._misfits: dict[int, float] = {}
        self._spent: dict[int, float] = {}
        self._async_seen_at = -ASYNC_SECONDS
        self._async_room = UNSEEN_ROOM
        self._foreign: dict[int, float] = {}
        self._resting_lanes: dict[int, float] = {}
        self._begin_pass()

    def _begin_pass(self) -> None:
        self._position = Position()
        self._pass_began = self._clock()
        self._pass_steps = 0
        self._pass_blocked = False
        self._pass_contended = False
        self._pass_lanes: set[int] = set()
        self._pass_open_lane: int | None = None

    @property
    def expects_coroutines(self) -> bool:
        """Whether coroutines have been claimed lately."""
        return self._clock() - self._async_seen_at <= ASYNC_SECONDS

    def request(self, room_threads: int, room_async: int) -> ClaimRequest:
        """Return the request for a claim of up to so many jobs of each kind."""
        now = self._clock()
        self._expire(now)
        if room_threads and room_async:
            self._misfits.clear()
        room_threads = min(room_threads, MOST_ROOM // 2)
        room_async = min(room_async, self._async_room, MOST_ROOM // 2)
        room = room_threads + room_async
        lane, queue, used = self._last
        skipped, places = self._skipped(), None
        if self.recall.is_active:
            skipped = list({queue_id for memory in self._memories()[:-1] for queue_id in memory})
            places = self.recall.places(skipped, self._starts, self._first_start)
            self._begin_pass()
        return ClaimRequest(
            worker_id=self.worker_id,
            room_threads=room_threads,
            room_async=room_async,
            position=self._position,
            starts=self._starts,
            first_start=self._first_start,
            skip_lanes=list(self._resting_lanes),
            skip_queues=skipped,
            last_lane=lane,
            last_queue=queue,
            last_used=used,
            # not when it recalls: it sees all that it knows of, from the best lane on, then
            recheck=places is None and (bool(self._resting_lanes) or self._position != Position()),
            most_visits=max(200, 2 * room),
            most_locks=min(room if self.expects_coroutines else room_threads or room, MOST_LOCKS),
            queues=self.filters.queues,
            exclude_queues=self.filters.exclude_queues,
            tenants=self.filters.tenants,
            places=places,
            start_keys=self.passed_over.start_keys,
        )

    def _expire(self, now: float) -> None:
        for memory in self._memories():
            if memory and min(memory.values()) <= now:
                for key in [k for k, until in memory.items() if until <= now]:
                    del memory[key]

    def _memories(self) -> tuple[dict[int, float], ...]:
        return self._blocked, self._misfits, self._spent, self._foreign, self._resting_lanes

    def _skipped(self) -> list[int]:
        """Return the queues to skip; when there are many, those that come next."""
        if not (self._blocked or self._foreign or self._misfits or self._spent):
            return []
        skipped = [*self._blocked, *self._foreign, *self._misfits, *self._spent]
        if len(skipped) <= MOST_SKIPPED:
            return skipped
        skipped.sort()
        at = self._position.queue_id or min(self._starts.values(), default=0)
        first = bisect_right(skipped, at)
        return (skipped[first:] + skipped[:first])[:MOST_SKIPPED]

    def finished(self, queue_id: int) -> None:
        """Note that a job of this queue ended here: it may have a free slot now."""
        if self._blocked.pop(queue_id, None) is not None:
            self._resting_lanes.clear()

    def notified(self) -> None:
        """Somebody has enqueued or tuned something: look at every queue again, if that is cheap.

        With many blocked queues it is not: each job that comes would wait for the walk over all of
        them. Then the memory is kept for what is left of its BLOCKED_SECONDS.
        """
        if len(self._blocked) + len(self._spent) <= COSTLY_STEPS:
            self.forget_blocked()

    def forget_blocked(self) -> None:
        """Look at every queue again: somebody said that there is work."""
        self._blocked.clear()
        self._misfits.clear()
        self._spent.clear()
        self._resting_lanes.clear()

    def learn(self, request: ClaimRequest, answer: Exchange) -> Verdict:
        """Remember what the answer to `request` shows, and say what to do next."""
        walk = answer.walk
        assert walk is not None, "the answer belongs to a request"
        if request.places is not None:
            self.recall.learn(request.places, walk, answer.taken)
        else:
            self.recall.walked(walk)
        if walk.has_controls:
            self.passed_over.note(walk.held_pairs)
        self._adapt_async_room(answer)
        self._remember_turns(answer)
        self._remember_blocked(request, answer, walk)
        if answer.jobs:
            # the next claim begins at the best lane again; the turns go on where they were
            self._begin_pass()
            return Verdict.LATER if _has_taken_all(request, answer, walk) else Verdict.AGAIN
        if not walk.complete and not (request.places is not None and walk.contended):
            self._position = walk.position  # none when it recalls: it leaves alone what it has seen
            return Verdict.AGAIN
        return self._end_pass()

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

    def _remember_blocked(self, request: ClaimRequest, answer: Exchange, walk: Walk) -> None:
        now = self._clock()
        self._pass_steps += walk.steps
        for queue_id in walk.foreign:
            self._foreign[queue_id] = now + FOREIGN_SECONDS
        for queue_id in walk.blocked:
            self._blocked[queue_id] = now + BLOCKED_SECONDS
        for queue_id, seconds in walk.spent.items():
            self._spent[queue_id] = now + min(BLOCKED_SECONDS, seconds)
        if walk.blocked or walk.spent:
            self._pass_blocked = True
        elif walk.skipped and (self._blocked or self._misfits or self._spent):
            # perhaps one of them, and not a queue of others: those are pairs of lane and queue
            self._pass_blocked = True
        if walk.contended:
            self._pass_contended = True
        if not answer.jobs:
            # locked, yet nothing was taken: no executor of its kind, or full by the later count
            one_kind = min(request.room_threads, request.room_async) == 0
            memory, rest = (
                (self._misfits, BLOCKED_SECONDS) if one_kind else (self._blocked, BARREN_SECONDS)
            )
            if request.places is not None and not walk.complete:
                rest = BLOCKED_SECONDS  # no cursor leads past them
            for queue_id in walk.held:
                memory[queue_id] = now + rest
                self._pass_blocked = True
        self._rest_lanes(walk, now)

    def _rest_lanes(self, walk: Walk, now: float) -> None:
        """Leave lanes alone for a while in which a costly walk found every queue blocked."""
        self._pass_lanes.update(walk.lanes)
        if walk.open_lane is not None and self._pass_open_lane is None:
            self._pass_open_lane = walk.open_lane
        if self._pass_steps <= COSTLY_STEPS:
            return
        bound = self._pass_open_lane
        if bound is None:
            bound = 40_000 if walk.complete else walk.position.lane
        rest = min(BLOCKED_SECONDS, 4 * (now - self._pass_began))
        for lane in self._pass_lanes:
            if lane < bound:
                self._resting_lanes.setdefault(lane, now + rest)

    def _end_pass(self) -> Verdict:
        contended = self._pass_contended
        blocked = self._pass_blocked or bool(self._resting_lanes)
        self._begin_pass()
        if contended:
            self.wait_seconds = random.uniform(0.1, 1.0) * CONTENDED_SECONDS
            return Verdict.CONTENDED
        if blocked:
            self.wait_seconds = min(BLOCKED_SECONDS, max(0.005, self._look_at() - self._clock()))
            return Verdict.BLOCKED
        return Verdict.EMPTY

    def _look_at(self) -> float:
        """Return when to look again after a pass in which all that is ready was blocked.

        A start that a rate allows is not to be missed, but a pass over many queues is followed by a
        rest in proportion: until the lanes are looked at again that it made rest.
        """
        rested = max(self._resting_lanes.values(), default=0.0)
        latest = max((*self._blocked.values(), *self._misfits.values(), rested), default=0.0)
        if not self._spent:
            return latest
        soonest = max(rested, min(self._spent.values()))
        return min(latest, soonest) if latest else soonest


def _has_taken_all(request: ClaimRequest, answer: Exchange, walk: Walk) -> bool:
    """Whether a claim has left nothing ready that it could have taken, as far as its answer tells.

    A queue that was locked may have more, for it takes turns with others; not if it was alone, or
    has no more slots.
    """
    if not walk.complete or walk.contended or request.is_filled_by(answer.jobs):
        return False
    left = {job.queue_id: job.slots_left for job in answer.jobs}
    return len(walk.held) == 1 or not any(left.get(queue_id, 1) for queue_id in walk.held)
