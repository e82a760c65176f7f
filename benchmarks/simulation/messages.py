"""What the simulation and its desks tell each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Trip(NamedTuple):
    """One round trip that claimed, with its commit."""

    seconds: float
    jobs: int


class Run(NamedTuple):
    """One run of a job, by the machine's monotonic clock."""

    job_id: int
    queue_id: int
    attempt: int
    start: float
    end: float
    is_killed: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """Start the workers of a pod."""

    pod: int
    workers: int
    version: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Let the workers of a pod end their jobs and sign off."""

    pod: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End workers of a pod without a word; None: all of them."""

    pod: int
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Tell:
    """Report what happened since the last report."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End: sign all workers off."""


Order = Start | Drain | Kill | Tell | Stop


@dataclass(slots=True)
class Report:
    """What a desk tells."""

    workers: int = 0
    running: int = 0
    trips: list[Trip] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    orphaned: list[int] = field(default_factory=list)
    """Jobs that killed workers held."""
    turns: int = 0
    late_seconds: float = 0.0
    """The longest that a worker had to wait for its turn because the desk was busy."""
    cpu_seconds: float = 0.0
    error: str = ""
