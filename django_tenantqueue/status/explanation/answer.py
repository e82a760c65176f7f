"""The parts of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Code(StrEnum):
    """What keeps a job from running, worst first: causes are listed in this order."""

    # nothing starts until people act
    QUEUE_MISSING = "queue_missing"
    UNKNOWN_TASK = "unknown_task"
    NO_WORKER = "no_worker"
    WORKERS_LEAVE = "workers_leave"
    NO_WORKER_TAKES = "no_worker_takes"
    NO_WORKER_OF_KIND = "no_worker_of_kind"
    NOT_SENT = "not_sent"
    WORKER_GONE = "worker_gone"
    WORKER_SILENT = "worker_silent"
    NOT_TAKEN_OVER = "not_taken_over"
    SESSION_HALTED = "session_halted"
    MONITOR_CANCELLED = "monitor_cancelled"
    MONITOR_STOPPED = "monitor_stopped"
    QUEUE_PAUSED = "queue_paused"
    QUEUE_WITHOUT_SLOTS = "queue_without_slots"
    SESSION_PAUSED = "session_paused"
    USER_PAUSED = "user_paused"
    USER_WITHOUT_SLOTS = "user_without_slots"
    MONITOR_PAUSED = "monitor_paused"
    MONITOR_WITHOUT_SLOTS = "monitor_without_slots"
    MONITOR_OPEN = "monitor_open"
    TASK_PAUSED = "task_paused"
    TASK_WITHOUT_SLOTS = "task_without_slots"
    PROMOTION_LATE = "promotion_late"
    # time passes, or other jobs end
    CANCEL_REQUESTED = "cancel_requested"
    MONITOR_WAITS = "monitor_waits"
    SESSION_BUSY = "session_busy"
    USER_FULL = "user_full"
    EXCLUSIVE_HELD = "exclusive_held"
    DETAILS_LEFT = "details_left"
    MONITOR_FULL = "monitor_full"
    MONITOR_INTERVAL = "monitor_interval"
    QUEUE_BOUNDS_MONITOR = "queue_bounds_monitor"
    TASK_FULL = "task_full"
    TASK_RATE_SPENT = "task_rate_spent"
    QUEUE_FULL = "queue_full"
    RATE_SPENT = "rate_spent"
    WORKERS_FULL = "workers_full"
    JOBS_BEFORE = "jobs_before"
    BACKOFF = "backoff"
    SCHEDULED = "scheduled"
    NOT_RELEASED = "not_released"


_RANK = {code: rank for rank, code in enumerate(Code)}


@dataclass(frozen=True, slots=True)
class Target:
    """The row that an operator would open.

    `kind`: queue, session, usercap, monitor, task, job or worker.
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
    """One thing that keeps a job from running, and what would change it.

    `jobs` are jobs that the sentence is about, at most NAMED. `done_by`: who did it,
    where the list of changes tells.
    """

    code: Code
    sentence: str
    remedy: str = ""
    target: Target | None = None
    jobs: Sequence[int] = ()
    done_by: Operator | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a job does, and each cause that keeps it from running, worst first."""

    job_id: int
    name: str
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
