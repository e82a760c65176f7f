"""Functions of the framework as tasks of this package: known by their paths, run with signals."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import wraps
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.dispatch import Signal
from django.utils import timezone
from django.utils.module_loading import import_string

from ...calls.options import Options
from ...calls.sources import Source, register_task, registered_tasks
from ...calls.task_hooks import TaskHooks
from ...conf import get_settings
from ...exceptions import Cancelled, ClaimLost, Permanent, TimeLimitExceeded
from .framework import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from .results import alias_of, change, new_result, result_of, worker_ids

if TYPE_CHECKING:
    from ...execution.current_job import RunningJob


class DeclaredTask:
    """A function that the framework's `@task` declares, as a RegisteredTask."""

    atomic = False
    hooks: TaskHooks | None = None
    rate: tuple[float, int | None] | None = None
    extra: Mapping[str, Any] = {}

    def __init__(self, task: Task[..., Any]) -> None:
        self.task = task
        self.name = task.module_path
        self.is_async = inspect.iscoroutinefunction(task.func)
        self.func = _run_async(task) if self.is_async else _run_sync(task)
        if task.takes_context:  # the worker gives it
            signature = inspect.signature(task.func)
            own = list(signature.parameters.values())[1:]
            self.func.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        self.source = Source("task", task.backend, self.name, self.name, self.is_async)

    @property
    def options(self) -> Options:
        """The options of its jobs; defaults if it is declared for another backend."""
        of = getattr(self.task.get_backend(), "job_options", None)
        return Options() if of is None else of(self.task)

    def _wants_retry(self, error: BaseException) -> bool:
        """Whether to retry a run that raised `error`."""
        return True

    def _backoff_seconds(self, attempt: int, error: BaseException) -> float | None:
        """Seconds before the next attempt; None: the settings' backoff."""
        return None


def registered(task: Task[..., Any]) -> DeclaredTask:
    """Return the registered task of the function of `task`, registering it at first."""
    known = registered_tasks().get(task.module_path)
    if isinstance(known, DeclaredTask) and known.task.func is task.func:
        return known
    made = DeclaredTask(task)
    register_task(made)
    return made


def find_declared(path: str) -> DeclaredTask | None:
    """Import and return the task at a path; None if it is not a task of the framework."""
    if path not in registered_tasks():
        try:
            found = import_string(path)
        except (ImportError, ValueError):
            return None
        if isinstance(found, Task) and found.module_path == path:
            return registered(found)
    known = registered_tasks().get(path)  # the import may have registered it
    return known if isinstance(known, DeclaredTask) else None


def _run_sync(task: Task[..., Any]) -> Callable[..., Any]:
    @wraps(task.func)
    def run(*args: Any, **kwargs: Any) -> Any:
        running = _current_job()
        result = _begun(task, running)
        _send(task_started, result)
        try:
            value = normalize_json(task.func(*_given(result, args), **kwargs))
        except BaseException as error:
            if _has_failed(result, running, error):
                _send(task_finished, result)
            raise
        _end(result, TaskResultStatus.SUCCESSFUL, value)
        _send(task_finished, result)
        return value

    return run


def _run_async(task: Task[..., Any]) -> Callable[..., Any]:
    @wraps(task.func)
    async def run(*args: Any, **kwargs: Any) -> Any:
        running = _current_job()
        reads = sync_to_async(_begun) if _needs_row(task) else None
        result = await reads(task, running) if reads else _begun(task, running)
        await _asend(task_started, result)
        try:
            value = normalize_json(await task.func(*_given(result, args), **kwargs))
        except BaseException as error:
            if _has_failed(result, running, error):
                await _asend(task_finished, result)
            raise
        _end(result, TaskResultStatus.SUCCESSFUL, value)
        await _asend(task_finished, result)
        return value

    return run


def _current_job() -> RunningJob:
    from ...execution.current_job import current_job  # after the models

    return current_job()


def _is_watched(signal: Signal) -> bool:
    """Whether a signal has receivers besides the framework's log."""
    return len(signal.receivers) > 1


def _needs_row(task: Task[..., Any]) -> bool:
    """Whether anything but the framework's log, which only uses the id, sees the result."""
    return task.takes_context or _is_watched(task_started) or _is_watched(task_finished)


def _begun(task: Task[..., Any], running: RunningJob) -> TaskResult[..., Any]:
    """Return the result of a starting run: of the row, if needed."""
    from ...models import Job

    now = timezone.now()
    begun_at = now - timedelta(seconds=running.age_seconds)
    job = None
    if running.id > 0 and _needs_row(task):  # eager mode stores nothing
        using = get_settings().database
        job = Job.objects.using(using).select_related("queue").find(running.id)
    if job is None:
        result = new_result(task, alias_of(running._claimed.source_id, task), now)
        change(result, id=str(running.id))
    else:
        result = result_of(job, task)
    change(
        result,
        status=TaskResultStatus.RUNNING,
        started_at=(result.started_at if running.attempt > 1 else None) or begun_at,
        last_attempted_at=begun_at,
        worker_ids=worker_ids(running.attempt, None if job is None else job.worker_id),
    )
    return result


def _given(result: TaskResult[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments, with the context first if the task takes it."""
    return (TaskContext(task_result=result), *args) if result.task.takes_context else args


def _has_failed(result: TaskResult[..., Any], running: RunningJob, error: BaseException) -> bool:
    """Whether a run that raised `error` was the last one. Then the result becomes failed."""
    if running.lost or isinstance(error, ClaimLost):
        return False
    is_last = running.attempt >= running.max_attempts or running.cancel_requested
    if not is_last and not isinstance(error, Permanent | Cancelled):
        return False
    is_interrupted = running._interrupted or running.cancel_requested
    if isinstance(error, asyncio.CancelledError) and is_interrupted:  # stored as what did it
        said = Cancelled() if running.cancel_requested else TimeLimitExceeded(str(error))
        error = said.with_traceback(error.__traceback__)
    kind = type(error)
    result.errors.append(
        TaskError(
            exception_class_path=f"{kind.__module__}.{kind.__qualname__}",
            traceback="".join(format_exception(error)),
        )
    )
    _end(result, TaskResultStatus.FAILED)
    return True


def _end(result: TaskResult[..., Any], status: TaskResultStatus, value: Any = None) -> None:
    change(result, status=status, finished_at=timezone.now(), _return_value=value)


def _send(signal: Signal, result: TaskResult[..., Any]) -> None:
    """Send a signal. Django logs errors of receivers; they do not change the outcome."""
    signal.send_robust(type(task_backends[result.backend]), task_result=result)


async def _asend(signal: Signal, result: TaskResult[..., Any]) -> None:
    """See _send(). The framework's own log needs no thread."""
    if _is_watched(signal):
        await signal.asend_robust(type(task_backends[result.backend]), task_result=result)
    else:
        _send(signal, result)
