"""Ready jobs that claims pass over: those of tasks that are paused, or have no free slot.

A claim reads past a bounded number of them. What this worker has met it moves into the lines of
their tasks, step by step, and it reads ahead of that: claims begin where it has come to, so that
the jobs behind a long backlog do not wait until all of it has been moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from ..gates import SESSION
from ..queries.claim import Key, Pair
from ..queries.gates import Keys, Where
from ..queries.tasks import OpenStart, find_open_start, set_aside_ready
from .gates import keys_of
from .task_gate import SET_ASIDE_ROWS

MOST_PAIRS = 50
"""Lanes of queues that one step looks at."""
MOST_READ = 50_000
"""Jobs that one step reads ahead in all. Half as many: the jobs behind a million start later, at
most twice as late. Twice as many: claims of this process wait longer for a step."""
LOOK_SECONDS = 0.25
"""How long the next step waits after one that had nothing to do."""
FIRST_KEY: Key = (-32768, 0)


class PassedOver:
    """The lanes of queues in which claims of this worker meet jobs of closed tasks."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._met: dict[Pair, Key] = {}
        self._next_at = 0.0

    @property
    def start_keys(self) -> dict[Pair, Key]:
        """Where claims begin to read."""
        return {pair: key for pair, key in self._met.items() if key != FIRST_KEY}

    @property
    def next_at(self) -> float | None:
        """When the next step is due; None: never."""
        return self._next_at if self._met else None

    def note(self, pairs: Iterable[Pair]) -> None:
        """Take lanes of queues that a claim has looked at while some tasks were closed."""
        for pair in pairs:
            self._met.setdefault(pair, FIRST_KEY)

    def step(self, where: Where) -> Keys:
        """Move a bounded number of jobs aside; return the gates that have room by that.

        Takes no lock that a claim waits for. At most half of the time is spent on it.
        """
        began = self._clock()
        chosen = dict(islice(self._met.items(), MOST_PAIRS))
        share = max(1, len(chosen))
        rows = max(1, SET_ASIDE_ROWS // share)
        found = find_open_start(
            where, chosen, most_read=max(rows, MOST_READ // share), most_moved=rows
        )
        read = [start.pair for start in found if start.closed_jobs and not start.reads_on]
        moved = set_aside_ready(where, read, most=rows) if read else []
        for pair in chosen:
            del self._met[pair]
        for start in found:
            if (key := _next_key(start, chosen[start.pair], rows)) is not None:
                self._met[start.pair] = key  # behind those that have waited for this step
        now = self._clock()
        is_busy = moved or any(start.reads_on for start in found)
        self._next_at = now + (now - began if is_busy else LOOK_SECONDS)
        keys = keys_of(moved)
        keys.pop(SESSION, None)
        return keys


def _next_key(start: OpenStart, known: Key, rows: int) -> Key | None:
    """Return where claims begin to read after a step; None: they need not pass over anything."""
    if start.jobs < rows or start.last is None or not start.closed_jobs:
        return None
    if start.first_open is not None:
        return start.first_open
    key = start.ahead or start.until or max(known, start.last)
    return key if key > start.last else FIRST_KEY
