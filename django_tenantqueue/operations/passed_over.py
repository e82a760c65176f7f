"""Ready jobs that claims skip: those of tasks that are paused or have no free slot.

A claim reads past a bounded number of them. The worker moves the ones it has met into the lines of
their tasks, step by step, and reads ahead of that. The next claims begin where it has read to, so
the jobs behind a long backlog do not wait until all of it has been moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from ..batch_sizes import BATCH
from ..gate_keys import SESSION
from ..queries.base import Where
from ..queries.claim import Key, Pair
from ..queries.gates import Keys
from ..queries.tasks import READY, OpenStart, find_open_start, set_aside
from ..states import Priority
from .gates import keys_of

MOST_READ = BATCH * 50
"""Jobs that one step reads ahead in all."""
FIRST_KEY: Key = (Priority.LOWEST_NUMBER, 0)


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
        """Remember lanes of queues that a claim has read while some tasks were closed."""
        for pair in pairs:
            self._met.setdefault(pair, FIRST_KEY)

    def step(self, where: Where, *, most_pairs: int = 50, idle_seconds: float = 0.25) -> Keys:
        """Move a bounded number of jobs aside; return the gates that have room now.

        Takes no lock that a claim waits for. It takes at most half of the worker's time, and waits
        `idle_seconds` after a step that had nothing to do.
        """
        began = self._clock()
        chosen = dict(islice(self._met.items(), most_pairs))
        share = max(1, len(chosen))
        rows = max(1, BATCH // share)
        found = find_open_start(
            where, chosen, most_read=max(rows, MOST_READ // share), most_moved=rows
        )
        read = [start.pair for start in found if start.closed_jobs and not start.reads_on]
        moved = set_aside(where, READY, pairs=read, most=rows) if read else []
        for pair in chosen:
            del self._met[pair]
        for start in found:
            if (key := _next_key(start, chosen[start.pair], rows)) is not None:
                self._met[start.pair] = key  # behind those that have waited for this step
        now = self._clock()
        is_busy = moved or any(start.reads_on for start in found)
        self._next_at = now + (now - began if is_busy else idle_seconds)
        keys = keys_of(moved)
        keys.pop(SESSION, None)
        return keys


def _next_key(start: OpenStart, known: Key, rows: int) -> Key | None:
    """Return where claims begin to read after a step; None: at the front."""
    if start.jobs < rows or start.last is None or not start.closed_jobs:
        return None
    if start.first_open is not None:
        return start.first_open
    key = start.ahead or start.until or max(known, start.last)
    return key if key > start.last else FIRST_KEY
