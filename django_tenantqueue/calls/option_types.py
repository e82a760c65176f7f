"""Types of options, for type checkers: what `.using()`, `delayed()` and `@task` take.

calls/options.py and calls/task_options.py check the values when they are given. A test compares the
names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from ..contrib.schedules.recurrence import Cron, Every
    from .call import CallLike
    from .task_hooks import TaskHooks
    from .unique import Unique

Seconds = float | timedelta
Moment = datetime | timedelta | float
"""An aware datetime, or a timedelta or seconds from now."""
RetryWhen = tuple[type[BaseException], ...] | Callable[[BaseException], bool]
Backoff = Seconds | Callable[[int, BaseException], Seconds]
OnWait = Literal["block", "skip"]
OnFailure = Literal["continue", "halt"]


class JobOptions(TypedDict, total=False):
    """Options of a job. None: the default. See the reference of tasks for their meaning."""

    tenant: str | None
    queue: str | None
    priority: int | None
    run_at: Moment | None
    expires_at: Moment | None
    max_attempts: int | None
    timeout: Seconds | None
    hard_timeout: Seconds | None
    labels: list[str] | tuple[str, ...] | None
    created_by: str | None
    session: str | int | None
    on_wait: OnWait | None
    on_failure: OnFailure | None
    user: str | int | None
    unique: Unique | None
    on_success: CallLike | list[CallLike] | None
    on_end: CallLike | list[CallLike] | None
    callback_url: str | None


class TaskOptions(JobOptions, total=False):
    """Options of `@task`: those of its jobs, and its own."""

    name: str | None
    retry_when: RetryWhen | type[BaseException] | None
    backoff: Backoff | None
    backoff_max: Seconds | None
    atomic: bool
    hooks: TaskHooks | None
    secret: bool | str | Sequence[str] | None
    schedule: str | Cron | Every | None
    max_per_second: float | None
    burst: int | None


class GroupOptions(TypedDict, total=False):
    """Options of a group: those of its monitor."""

    name: str | None
    tenant: str | None
    queue: str | None
    priority: int | None
    session: str | int | None
    created_by: str | None
    parallel: int | None
    interval: Seconds | None
    stop_after_failures: int | None
