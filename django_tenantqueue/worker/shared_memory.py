"""Memory that a child shares with its supervisor: the jobs it has begun and their limits, its last
turn of the loop, and whether it wants a successor or ends.

When the child has died, the supervisor knows which jobs must count an attempt, and no start costs a
write to the database. Limits hold when the child is stopped, busy in C, or has no database.
"""

from __future__ import annotations

import mmap
import time
from dataclasses import dataclass
from enum import IntEnum

HEADER = TURNED, RETIRING, LEAVING, DISMISSED, BEAT = range(5)
"""The header: when the loop turned last (monotonic ns), whether a successor is wanted, whether the
process ends without waiting for its jobs, whether no other process takes its place, and when the
last heartbeat was sent that was answered (0: none yet)."""
ENTRY = ID, BEGUN, LIMIT, WHY = range(4)
"""A job: its id (0: free), when it began, when the process must be killed for it, and why."""


class Why(IntEnum):
    """The reason for a limit of a job."""

    TIME = 0
    CANCEL = 1


@dataclass(frozen=True, slots=True)
class BegunJob:
    """A job that a child has begun; times are monotonic seconds."""

    job_id: int
    begun_at: float
    limit_at: float | None
    why: Why


class SharedMemory:
    """A table made before the fork; the child writes, the supervisor reads."""

    def __init__(self, size: int) -> None:
        cells = len(HEADER) + size * len(ENTRY)
        self._table = memoryview(mmap.mmap(-1, 8 * cells)).cast("q")
        self._free = list(range(len(HEADER), cells, len(ENTRY)))
        self._places: dict[int, int] = {}
        self._table[TURNED] = time.monotonic_ns()

    # written by the child

    def reserve(self, job_id: int) -> int:
        """Return a place for a job that was claimed; -1 when there is none left."""
        if not self._free:
            return -1
        place = self._places[job_id] = self._free.pop()
        return place

    def begin(self, place: int, job_id: int, limit_seconds: float | None) -> None:
        """Mark a job as begun; called in the thread that runs it. The id is written last."""
        if place < 0:
            return
        now = time.monotonic_ns()
        self._table[place + BEGUN] = now
        self._table[place + LIMIT] = 0 if limit_seconds is None else now + int(limit_seconds * 1e9)
        self._table[place + WHY] = Why.TIME
        self._table[place + ID] = job_id

    def end(self, place: int) -> None:
        """Remove the limit of a job that has ended, although its end is not stored yet."""
        if place >= 0:
            self._table[place + LIMIT] = 0

    def limit(self, job_id: int, seconds: float, why: Why) -> None:
        """Have the process killed for a job after `seconds`, if that is sooner."""
        place = self._places.get(job_id)
        if place is None or not self._table[place + ID]:
            return
        at = time.monotonic_ns() + int(seconds * 1e9)
        old = self._table[place + LIMIT]
        if not old or at < old:
            self._table[place + WHY] = why
            self._table[place + LIMIT] = at

    def clear(self, job_id: int) -> None:
        """Remove a job whose end is stored, or that was given back."""
        place = self._places.pop(job_id, None)
        if place is not None:
            self._table[place + ID] = 0
            self._table[place + LIMIT] = 0
            self._free.append(place)

    def turn(self) -> None:
        """Note that the loop turns."""
        self._table[TURNED] = time.monotonic_ns()

    def beat(self, sent_at: float) -> None:
        """Note that a heartbeat sent at this time (monotonic seconds) was written."""
        self._table[BEAT] = int(sent_at * 1e9)

    def retire(self) -> None:
        """Ask for a successor: this process ends its jobs and claims no more."""
        self._table[RETIRING] = 1

    def leave(self) -> None:
        """Note that this process is about to end, and the jobs it has begun are given back."""
        self._table[LEAVING] = 1

    def dismiss(self) -> None:
        """Note that no other process takes the place of this one when it ends."""
        self._table[DISMISSED] = 1

    # read by the supervisor

    @property
    def is_leaving(self) -> bool:
        """Whether the child ends in good order, although jobs have begun."""
        return bool(self._table[LEAVING])

    @property
    def is_retiring(self) -> bool:
        """Whether the child asked for a successor."""
        return bool(self._table[RETIRING])

    @property
    def is_dismissed(self) -> bool:
        """Whether an operator drains the child, or nothing is left to run."""
        return bool(self._table[DISMISSED])

    @property
    def stuck_seconds(self) -> float:
        """Return how long ago the child's loop turned last."""
        return (time.monotonic_ns() - self._table[TURNED]) / 1e9

    @property
    def silent_seconds(self) -> float:
        """Return how long ago the last heartbeat was sent that was written; 0.0 before the first.

        A child without a heartbeat has claimed nothing.
        """
        sent_at = self._table[BEAT]
        return (time.monotonic_ns() - sent_at) / 1e9 if sent_at else 0.0

    @property
    def has_beaten(self) -> bool:
        """Whether a heartbeat was written: the child has signed on, and claims jobs."""
        return self._table[BEAT] > 0

    def begun(self) -> list[BegunJob]:
        """Return the jobs that have begun and whose ends are not known to be stored."""
        found = []
        for place in range(len(HEADER), len(self._table), len(ENTRY)):
            job_id, begun, limit, why = self._table[place : place + len(ENTRY)]
            if job_id:
                at = limit / 1e9 if limit else None
                found.append(BegunJob(job_id, begun / 1e9, at, Why(why)))
        return found
