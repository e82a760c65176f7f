"""The parts of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..conditions import Code, of, sentence

_RANK = {code: rank for rank, code in enumerate(Code)}


@dataclass(frozen=True, slots=True)
class Target:
    """The row that an operator would open.

    `kind`: queue, session, userlimit, monitor, task, job or worker.
    """

    kind: str
    id: int
    label: str


@dataclass(frozen=True, slots=True)
class Operator:
    """Who did it, from where, and when. `name`: "" when it is not known."""

    name: str
    source: str
    at: datetime

    @property
    def text(self) -> str:
        """Name and source in words."""
        return f"{self.name} ({self.source})" if self.name else self.source


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that keeps a job from running, and its remedy.

    `jobs` are jobs that the sentence mentions, at most NAMED. `done_by`: who did it, if the audit
    log knows.
    """

    code: Code
    sentence: str
    remedy: str = ""
    target: Target | None = None
    jobs: Sequence[int] = ()
    done_by: Operator | None = None


def cause_of(
    code: Code,
    values: Mapping[str, Any] | None = None,
    target: Target | None = None,
    jobs: Sequence[int] = (),
    *,
    told: Any = None,
    remedy: Any = None,
    done_by: Operator | None = None,
) -> Cause:
    """Return a cause in the words of its condition, with these values, or in other ones."""
    words = of(code)
    return Cause(
        code,
        sentence(words.job if told is None else told, values or {}),
        sentence(words.remedy if remedy is None else remedy, values or {}),
        target,
        jobs,
        done_by,
    )


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a job does, and each cause that keeps it from running, worst first."""

    job_id: int
    task: str
    state: str
    sentence: str
    causes: Sequence[Cause]
    read_at: datetime


def sorted_causes(causes: Sequence[Cause]) -> list[Cause]:
    """Return causes worst first, each code once for each row that it is about."""
    found: dict[tuple[Code, Target | None], Cause] = {}
    for cause in causes:
        found.setdefault((cause.code, cause.target), cause)
    return sorted(found.values(), key=lambda cause: _RANK[cause.code])
