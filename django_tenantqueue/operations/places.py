"""Where ready jobs are, as far as one worker process remembers between two claims.

The rows are the truth. This memory only saves work. It holds the places (lane, queue, priority)
that had ready jobs, and the queues that yielded nothing a moment ago. See
docs/explanation/claim.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice, takewhile

from ..queries.claim import ClaimRequest, Look, Sight, Status
from ..queries.gates import Place
from ..queries.survey import FIRST_PLACE, Survey

BLOCKED_SECONDS = 0.25
"""How long a full or paused queue is skipped, unless one of its jobs finishes here."""
DISPATCH_SECONDS = BLOCKED_SECONDS / 5
"""The same in a dispatcher: none of its jobs finish here."""
SHORT_REST_SECONDS = 0.02
"""Longest wait before queues are looked at again that other sessions had locked."""
EDIT_SECONDS = BLOCKED_SECONDS * 8
"""Shortest time between two searches that follow edits of queues."""
FOREIGN_SECONDS = EDIT_SECONDS * 5
"""How long a queue that this worker's filters exclude is ignored."""
FEW_STEPS = 16
"""Steps of each claim of a busy worker."""
MOST_STEPS = 200
"""Steps of each claim of a worker that knows no places yet."""
MORE_STEPS = MOST_STEPS // 4
"""Steps of a claim after a pause, and most blocked queues that it checks again."""
ARRIVAL_SECONDS = 1.0
"""How long new ids are looked at: transactions may commit in another order."""


class Places:
    """The places that one worker process knows, and how it looks for others."""

    def __init__(
        self, clock: Callable[[], float], blocked_seconds: float = BLOCKED_SECONDS
    ) -> None:
        self.by_ids = False
        """Places are read from their least ids on, because reading from the start is costly."""
        self.is_searching = True
        """A pass over all places is under way, without pauses."""
        self._clock = clock
        self._blocked_seconds = blocked_seconds
        self._known: dict[Place, int] = {}
        """Places, and the least ids at which something may be ready; 0 unless `by_ids`."""
        self._of_queue: dict[int, set[Place]] = {}
        self._open: list[Place] = []
        """Known places that the next claims read, in their order."""
        self._blocked: dict[int, float] = {}
        """Full or paused queues, and until when they are left alone; in this order."""
        self._resting: dict[int, float] = {}
        """The same of queues that have used up their rate, or yielded nothing."""
        self._contended: set[int] = set()
        """Queues that other sessions had locked."""
        self._misfits: set[int] = set()
        """Resting queues with jobs for which there was no room of their kind."""
        self._foreign: dict[int, float] = {}
        """Queues that the filters exclude, and until when they are ignored."""
        self._cursor = FIRST_PLACE
        self._is_new = True
        """No claim has been answered."""
        self._jumped_to: int | None = None
        """The lane in which the first pass was begun at the place of the first turn."""
        self._last_ids: deque[tuple[float, int]] = deque()
        """Times, and the last ids that had been given to jobs by then."""
        self._surveyed_to = 0
        """Ids up to this one had been given to jobs a second before the last survey."""
        self._looked_at = clock()
        self._edits: int | None = None
        self._edits_at = 0.0

    # before a claim

    def fill(self, request: ClaimRequest, *, goes_on: bool = False) -> None:
        """Set where a claim reads. `goes_on`: the last one found nothing, and more is left."""
        now = request.at = self._clock()
        steps = MORE_STEPS if now - self._looked_at >= SHORT_REST_SECONDS else FEW_STEPS
        if request.room_threads and request.room_async:
            self._reopen(self._misfits)
        if not goes_on:
            self._reopen(self._contended)
            self._expire(now, steps)
        if self.is_searching:
            steps = MOST_STEPS
        request.by_ids = self.by_ids
        request.cursor = self._cursor
        request.most_steps = 0 if self.by_ids else steps
        skipped = chain(self._contended, self._resting, self._blocked, self._foreign)
        request.skip_queues = list(islice(skipped, 2 * MOST_STEPS))
        # enough to reach open queues behind those that turn out to be blocked
        offered = self._in_turn(request, 2 * request.most_locks + steps)
        request.known = {place: self._known[place] for place in offered}
        if self._last_ids:
            request.arrivals_after = self._last_ids[0][1]

    def _expire(self, now: float, most: int) -> None:
        """Open queues that have been left alone for long enough; at most `most` blocked ones."""
        self._reopen([queue_id for queue_id, until in self._resting.items() if until <= now])
        for queue_id in [queue_id for queue_id, until in self._foreign.items() if until <= now]:
            del self._foreign[queue_id]
        due = takewhile(lambda queue_id: self._blocked[queue_id] <= now, self._blocked)
        self._reopen(islice(due, most))

    def _in_turn(self, request: ClaimRequest, most: int) -> list[Place]:
        offered: list[Place] = []
        at = 0
        while at < len(self._open) and len(offered) < most:
            lane = self._open[at][0]
            start = request.starts.get(lane, request.first_start)
            end = bisect_left(self._open, (lane + 1,), at)
            turn = bisect_left(self._open, (lane, start + 1), at, end)
            offered += self._open[turn:end][: most - len(offered)]
            offered += self._open[at:turn][: most - len(offered)]
            at = end
        return offered

    # after a claim

    def learn(self, request: ClaimRequest, look: Look) -> None:
        """Remember the places that a claim saw, and which queues to leave alone."""
        now = self._looked_at = self._clock()
        self.take(look.steps)
        for place, job_id in look.arrivals.items():
            # earlier ones may not have been read; the last survey saw no ready jobs before these
            self.add(place, job_id or self._surveyed_to)
        for sight in look.sights:
            self._take_sight(sight, now, is_known=sight.place in request.known)
        for queue_id, seconds in look.spent_seconds.items():
            self._rest(queue_id, min(self._blocked_seconds, seconds))
        for queue_id in look.contended:
            self._contended.add(queue_id)
            self._close(self._of_queue.get(queue_id, ()))
        if not self.by_ids:
            self._advance(request, look)
        self._note_last_id(look.last_arrival, request.at, now)
        self._note_edits(look.edits, now)

    def _take_sight(self, sight: Sight, now: float, *, is_known: bool) -> None:
        place, queue_id = sight.place, sight.place[1]
        if sight.first_id is None:
            self._drop(place)
            return
        if is_known and self.by_ids:
            self._known[place] = sight.first_id
        else:
            self.add(place, sight.first_id)
        if sight.status is Status.FOREIGN:
            self._foreign[queue_id] = now + FOREIGN_SECONDS
            for place in tuple(self._of_queue.get(queue_id, ())):
                self._drop(place)
        elif sight.status is Status.BLOCKED:
            self.block(queue_id)

    def _advance(self, request: ClaimRequest, look: Look) -> None:
        """Continue the pass over all places, or begin the next one."""
        if self._jumps(request, look):
            return
        is_whole = look.is_pass and request.cursor == FIRST_PLACE
        if is_whole:
            for place in self._known.keys() - look.steps.keys():
                self._drop(place)
        if look.is_pass:
            self._cursor = FIRST_PLACE
            self.is_searching = False
        else:
            self._cursor = next(reversed(look.steps))

    def _jumps(self, request: ClaimRequest, look: Look) -> bool:
        """Begin the first pass where the first turn begins, if the first claim ends before that.

        Else all new workers would take their first jobs from the queues with the lowest ids. When
        the lane has been passed, the pass begins again at the first place.
        """
        was_new, self._is_new = self._is_new, False
        if not was_new and self._jumped_to is None:
            return False
        last = next(reversed(look.steps), FIRST_PLACE)
        if self._jumped_to is None:
            lane = next(iter(look.steps), FIRST_PLACE)[0]
            if look.is_pass or lane != last[0] or request.first_start <= last[1]:
                return False
            self._jumped_to = lane
            self._cursor = (lane, request.first_start, FIRST_PLACE[2])
            forgotten = list(look.steps)
        else:
            if not look.is_pass and last[0] == self._jumped_to:
                return False
            forgotten = [place for place in look.steps if place[0] > self._jumped_to]
            self._jumped_to = None
            self._cursor = FIRST_PLACE
        for place in forgotten:  # better ones come first, and then these are found again
            self._drop(place)
        return True

    def _note_edits(self, edits: int, now: float) -> None:
        """Check all blocked queues when some queue was edited: it may be one of them."""
        if edits == self._edits or now < self._edits_at:
            return
        if self._edits is not None and len(self._blocked) > MORE_STEPS:
            self._edits_at = now + EDIT_SECONDS
            self.forget_blocked()
        self._edits = edits

    def _note_last_id(self, last_id: int, looked_at: float, now: float) -> None:
        seen = self._last_ids
        if seen and last_id < seen[-1][1]:
            seen.clear()  # the sequence was set back
        # ids that were known a second before a look have been looked at twice
        while len(seen) > 1 and seen[1][0] + ARRIVAL_SECONDS <= looked_at:
            seen.popleft()
        if not seen or last_id > seen[-1][1]:
            seen.append((now, last_id))

    def add(self, place: Place, least_id: int) -> None:
        """Take a place where jobs are ready from this id on."""
        queue_id = place[1]
        if queue_id in self._foreign:
            return
        if place not in self._known:
            self._of_queue.setdefault(queue_id, set()).add(place)
            if not any(queue_id in one for one in (self._blocked, self._resting, self._contended)):
                self._open_place(place)
        self._known[place] = min(least_id, self._known.get(place, least_id)) if self.by_ids else 0

    def take(self, places: Mapping[Place, int]) -> None:
        """Take where jobs have become ready, and their least ids."""
        for place, job_id in places.items():
            self.add(place, job_id)

    def _drop(self, place: Place) -> None:
        if self._known.pop(place, None) is None:
            return
        self._close([place])
        places = self._of_queue[place[1]]
        places.discard(place)
        if not places:
            del self._of_queue[place[1]]

    def _open_place(self, place: Place) -> None:
        at = bisect_left(self._open, place)
        if at == len(self._open) or self._open[at] != place:
            self._open.insert(at, place)

    def _close(self, places: Iterable[Place]) -> None:
        for place in places:
            at = bisect_left(self._open, place)
            if at < len(self._open) and self._open[at] == place:
                del self._open[at]

    def survey(self, survey: Survey) -> None:
        """Take all places there are; from now on, only jobs from their least ids on are read."""
        self.by_ids = True
        self.is_searching = False
        self._jumped_to = None
        for place in self._known.keys() - survey.places.keys():
            self._drop(place)
        for place, least_id in survey.places.items():
            self.add(place, least_id)
            if place in self._known:  # its queue is not foreign
                self._known[place] = least_id
        now = self._clock()
        self._note_last_id(survey.last_id, now, now)
        self._surveyed_to = self._last_ids[0][1]

    def read_all(self) -> None:
        """Look for jobs of all ids again, everywhere."""
        self.by_ids = False
        self._known = dict.fromkeys(self._known, 0)
        self.forget_blocked()

    # queues that are left alone

    def block(self, queue_id: int) -> None:
        """Leave a queue alone that is full or paused."""
        self._blocked.pop(queue_id, None)
        self._blocked[queue_id] = self._clock() + self._blocked_seconds
        self._close(self._of_queue.get(queue_id, ()))

    def _rest(self, queue_id: int, seconds: float) -> None:
        self._resting[queue_id] = self._clock() + seconds
        self._close(self._of_queue.get(queue_id, ()))

    def rest_barren(self, queue_id: int, *, is_misfit: bool) -> None:
        """Leave a queue alone that was locked and yielded nothing."""
        if is_misfit:
            self._misfits.add(queue_id)
        self._rest(queue_id, self._blocked_seconds if is_misfit else SHORT_REST_SECONDS / 2)

    def _reopen(self, queue_ids: Iterable[int]) -> None:
        for queue_id in tuple(queue_ids):
            self._blocked.pop(queue_id, None)
            self._resting.pop(queue_id, None)
            self._contended.discard(queue_id)
            self._misfits.discard(queue_id)
            for place in self._of_queue.get(queue_id, ()):
                self._open_place(place)

    def _reopen_all(self) -> None:
        self._reopen([*self._blocked, *self._resting, *self._contended])

    def finished(self, queue_id: int) -> None:
        """Note that a job of this queue ended here: the queue may have a free slot now."""
        if queue_id not in self._resting:
            self._reopen([queue_id])

    def notified(self) -> None:
        """Check every queue again if they are few: something may have changed.

        With many, each new job would wait for a check of all. New jobs are found by their ids.
        """
        if len(self._blocked) + len(self._resting) <= FEW_STEPS:
            self._reopen_all()

    def forget_blocked(self) -> None:
        """Check all places again, without pauses."""
        self._reopen_all()
        if not self.is_searching:
            self._cursor = FIRST_PLACE
            self.is_searching = True

    @property
    def has_open(self) -> bool:
        """Whether there are places to read."""
        return bool(self._open)

    @property
    def has_contended(self) -> bool:
        """Whether there are ready jobs in queues that other sessions had locked."""
        return any(queue_id in self._of_queue for queue_id in self._contended)

    @property
    def has_blocked(self) -> bool:
        """Whether there are ready jobs in queues that are left alone."""
        return len(self._open) < len(self._known)

    @property
    def wait_seconds(self) -> float:
        """How long until a queue that is left alone may be looked at again."""
        now = self._clock()
        look_at = min(self._resting.values(), default=now + self._blocked_seconds)
        return min(self._blocked_seconds, max(0.0, look_at - now))
