"""`TaskHooks`: hooks of a task around its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..execution.current_job import RunningJob
    from ..models import Job


class TaskHooks:
    """Base class of hooks: override what you need, and give an object: `@task(hooks=Watched())`.

    The methods here do nothing. All but enqueue() are called in the worker; for a coroutine task in
    the event loop, so they must not block.
    """

    __slots__ = ()

    def enqueue(self, job: Job) -> None:
        """Called after .delay() has inserted a job, in its transaction. Errors reach the caller.

        Not called for enqueue_many(), nor for the details and the callback of a monitor.
        """

    def before(self, job: RunningJob) -> None:
        """Called before the function. Errors fail the run."""

    def success(self, job: RunningJob, result: Any) -> None:
        """Called with the return value, before the success is stored. Errors are logged."""

    def attempt_failed(self, job: RunningJob, error: BaseException) -> None:
        """Called after each failed attempt. Errors are logged."""

    def failure(self, job: RunningJob) -> None:
        """Called after the last failed attempt, following attempt_failed(). Errors are logged."""

    def after(self, job: RunningJob) -> None:
        """Called after every run. Errors are logged."""


ELSEWHERE = {
    "error": "attempt_failed(job, error)",
    "on_failure": "failure(job)",
    "on_retry": "attempt_failed(job, error)",
    "on_success": "success(job, result)",
}
"""Other names of the methods -> the names here."""
HOOKS = tuple(name for name in vars(TaskHooks) if not name.startswith("_"))
"""Names of the methods."""
