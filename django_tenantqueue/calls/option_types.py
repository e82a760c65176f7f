"""Types of options, for type checkers: what `.using()`, `delayed()` and `@task` take.

calls/options.py and calls/task_options.py check the values when they are given. A test compares the
names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from ..contrib.schedules.recurrence import Cron, Every
    from .call import CallLike
    from .serial import Serial
    from .task_hooks import TaskHooks
    from .unique import Unique

Seconds = float | timedelta
Moment = datetime | timedelta | float
"""An aware datetime, or a timedelta or seconds from now."""
RetryWhen = tuple[type[BaseException], ...] | Callable[[BaseException], bool]
Backoff = Seconds | Callable[[int, BaseException], Seconds]


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
    session: str | int | Serial | None
    limit_user: str | int | None
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
    searchable: str | Sequence[str] | None
    schedule: str | Cron | Every | None
    max_per_second: float | None
    burst: int | None


class GroupOptions(TypedDict, total=False):
    """Options of a group: those of its monitor."""

    name: str | None
    """The name of the monitor; default: that of the first task."""
    tenant: str | None
    """The tenant of the jobs; default: the current one."""
    queue: str | None
    """The queue of jobs whose calls set none."""
    priority: int | None
    """The priority of the jobs."""
    session: str | int | None
    """The session in which the group takes a turn, as one."""
    created_by: str | None
    """The person or system that requested the jobs."""
    parallel: int | None
    """The maximum number of its jobs that are ready or run at once; default 1,000."""
    interval: Seconds | None
    """The time between two jobs that become ready; default 0."""
    stop_after_failures: int | None
    """Start no more jobs after this many have failed; default: never."""
