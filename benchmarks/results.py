"""What a case hands back: rows, each with a sample per repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .measure import median_sample, worst


class Incorrect(Exception):
    """A result is wrong: a job was lost or ran twice, or a slot limit was exceeded."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What was used while something was measured; None where it cannot be known."""

    seconds: float
    server_cpu_seconds: float | None
    wal_bytes: float | None
    python_cpu_seconds: float
    """CPU of the worker processes; of this process where it is the one that is measured."""
    other_cores: float
    """Cores used meanwhile by what does not belong to the benchmark."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement. `jobs` is what the cost is divided by."""

    value: float
    jobs: int = 0
    cost: Cost | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that the median is to keep."""

    bound: float
    at_least: bool

    def met(self, value: float) -> bool:
        """Say whether a value keeps it."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report."""

    case: str
    what: str
    unit: str
    samples: Sequence[Sample]
    higher_is_better: bool = True
    target: Target | None = None
    digits: int = 0
    median: Sample = field(init=False)

    def __post_init__(self) -> None:
        chosen = median_sample(self.samples, lambda sample: sample.value)
        object.__setattr__(self, "median", chosen)

    @property
    def worst(self) -> float:
        """The worst value."""
        values = [sample.value for sample in self.samples]
        return worst(values, higher_is_better=self.higher_is_better)

    @property
    def met(self) -> bool | None:
        """Whether the median keeps the target; None without one."""
        return None if self.target is None else self.target.met(self.median.value)

    def as_json(self) -> dict[str, Any]:
        """Return what goes into the JSON file."""
        return {
            "case": self.case,
            "what": self.what,
            "unit": self.unit,
            "median": self.median.value,
            "worst": self.worst,
            "higher_is_better": self.higher_is_better,
            "target": None if self.target is None else asdict(self.target),
            "met": self.met,
            "samples": [asdict(sample) for sample in self.samples],
        }


@dataclass(frozen=True, slots=True)
class Orders:
    """What a process of a fleet is told at its start."""

    name: str
    workers: int
    threads: int
    """Jobs that a worker runs at once."""
    seconds: float
    """How long a job takes."""
    supervised: bool
    """Each worker has a supervisor, with a connection of its own."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a fleet, or a process of it, has done."""

    least_claims: int
    """Claims of the worker that made the fewest."""
    claims: int
    empty_claims: int
    seconds: list[float]
    """How long each claim took."""
    begun: list[tuple[int, float]]
    """(job id, monotonic time) of each start."""


def at_least(bound: float) -> Target:
    """Return a lower bound."""
    return Target(bound, at_least=True)


def at_most(bound: float) -> Target:
    """Return an upper bound."""
    return Target(bound, at_least=False)
