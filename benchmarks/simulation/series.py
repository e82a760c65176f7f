"""The recorded curves of a run, as they are kept in the repository."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = (
    "second",
    "waiting",
    "blocked",
    "running",
    "wanted",
    "workers",
    "pods",
    "oldest_startable",
    "small_p95",
    "enqueued",
    "claimed",
    "claims",
    "empty_claims",
    "claim_p50_ms",
    "claim_p95_ms",
    "server_cores",
    "python_cores",
    "scrape_ms",
    "late",
)
"""All times are seconds unless they are called `ms`; numbers per second are means since the last
point.

`waiting`: all ready jobs, `blocked`: those of them that the metrics call blocked. `wanted`: the
autoscaler's figure, `workers`: those that are there. `small_p95`: how long jobs of small tenants
waited that began since the last point. `claimed`: jobs, `claims`: round trips that claimed, of
which `empty_claims` took nothing; their times contain the commit. `scrape_ms`: time of one answer
to the autoscaler. `late`: the longest that a desk let a worker wait for its turn."""


@dataclass(slots=True)
class Series:
    """Points in time, what happened between them, and what the checks found."""

    plan: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    """Second and kind: deploy, deployed, kill, pod, burst, limited-burst, evening, limited, end."""
    points: list[list[float]] = field(default_factory=list)

    def column(self, name: str) -> list[float]:
        """Return the values of a column."""
        at = COLUMNS.index(name)
        return [point[at] for point in self.points]

    def between(self, name: str, begin: float, end: float) -> list[float]:
        """Return the values of a column in a part of the run."""
        values = zip(self.column("second"), self.column(name), strict=True)
        return [value for second, value in values if begin <= second < end]

    def seconds_of(self, kind: str) -> list[float]:
        """Return when events of a kind happened."""
        return [second for second, what in self.events if what == kind]

    def write(self, path: Path) -> None:
        """Write it as JSON, a line for each point."""
        head = {"plan": self.plan, "facts": self.facts, "events": self.events, "columns": COLUMNS}
        text = json.dumps(head, ensure_ascii=False, indent=1)
        points = ",\n".join(json.dumps(point) for point in self.points)
        path.write_text(f'{text[:-2]},\n "points": [\n{points}\n]}}\n')


def read_series(path: Path) -> Series:
    """Return what was written to a file."""
    found = json.loads(path.read_text())
    if tuple(found["columns"]) != COLUMNS:
        raise ValueError(f"{path.name} has other columns: run the simulation again")
    events: Sequence[Any] = found["events"]
    return Series(
        plan=found["plan"],
        facts=found["facts"],
        events=[(second, kind) for second, kind in events],
        points=found["points"],
    )
