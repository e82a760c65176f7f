"""Which jobs a child has begun, in memory that it shares with its supervisor.

So the supervisor knows, when the child has died, which jobs must count an attempt, and no start
costs a write to the database.
"""

from __future__ import annotations

import mmap

WIDTH = 8


class Marks:
    """A table of job ids. Made before the fork; the child writes, the supervisor reads."""

    def __init__(self, size: int) -> None:
        self._table = memoryview(mmap.mmap(-1, size * WIDTH)).cast("q")
        self._free = list(range(size))
        self._places: dict[int, int] = {}

    def reserve(self, job_id: int) -> int:
        """Return a place for a job that was claimed; -1 when there is none left."""
        if not self._free:
            return -1
        place = self._places[job_id] = self._free.pop()
        return place

    def begin(self, place: int, job_id: int) -> None:
        """Mark a job as begun; called in the thread that runs it."""
        if place >= 0:
            self._table[place] = job_id

    def clear(self, job_id: int) -> None:
        """Forget a job whose end is stored, or that was given back."""
        place = self._places.pop(job_id, None)
        if place is not None:
            self._table[place] = 0
            self._free.append(place)

    def begun(self) -> set[int]:
        """Return the ids of the jobs that have begun and whose end is not known to be stored."""
        return {job_id for job_id in self._table if job_id}
