"""One child process, as its supervisor sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...operations.rescue import DeathReport
from ..shared_memory import SharedMemory


@dataclass(slots=True, eq=False)
class Child:
    """Its place among the children, its row, its shared memory, and its orders."""

    pid: int
    number: int
    worker_id: int
    shared_memory: SharedMemory = field(repr=False)
    sentence: DeathReport | None = None
    """Why it was killed."""
    killed_at_stop: bool = False
    is_unleased: bool = False
    """It was killed because others may run its jobs."""
    told_to_drain: bool = False
    told_to_stop_at: float | None = None
    """When an operator's order to stop was handed on (monotonic time)."""
    has_successor: bool = False

    @property
    def is_dismissed(self) -> bool:
        """Whether no other takes its place: an operator ended it, or nothing is left to run."""
        return (
            self.told_to_drain
            or self.told_to_stop_at is not None
            or self.shared_memory.is_dismissed
        )

    def begun(self) -> frozenset[int]:
        """Return the ids of the jobs that it has begun and whose end may not be stored."""
        return frozenset(begun_job.job_id for begun_job in self.shared_memory.begun())
