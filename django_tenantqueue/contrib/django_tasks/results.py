"""Jobs as results of the framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.utils.dateparse import parse_datetime

from ...calls.serial import session_of
from ...gate_keys import own_key
from ...states import Priority, State
from ...stored_error import entries_of
from .framework import (
    TASK_MAX_PRIORITY,
    TASK_MIN_PRIORITY,
    Task,
    TaskError,
    TaskResult,
    TaskResultStatus,
    task_backends,
)

if TYPE_CHECKING:
    from ...models import Job

P = ParamSpec("P")
R = TypeVar("R")

STATUSES = {
    State.SUCCESS: TaskResultStatus.SUCCESSFUL,
    State.ERROR: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
    State.RUNNING: TaskResultStatus.RUNNING,
}
"""A job in any other state is ready."""


def not_begun() -> dict[str, Any]:
    """Return attributes of the result of a job that has not started."""
    return {
        "status": TaskResultStatus.READY,
        "started_at": None,
        "finished_at": None,
        "last_attempted_at": None,
        "errors": [],
        "worker_ids": [],
    }


def new_result(
    task: Task[P, R],
    alias: str,
    now: datetime,
    *,
    args: list[Any] | None = None,
    kwargs: dict[str, Any] | None = None,
) -> TaskResult[P, R]:
    """Return the result of a job that is enqueued now."""
    return TaskResult(
        task=task,
        id="",
        enqueued_at=now,
        args=args or [],
        kwargs=kwargs or {},
        backend=alias,
        **not_begun(),
    )


def result_of(job: Job, task: Task[..., Any]) -> TaskResult[..., Any]:
    """Return the result of a job of `task`, whose queue is loaded.

    Raises LookupError if the cache has dropped the return value.
    """
    errors = entries_of(job.errors)
    result = TaskResult(
        task=_as_enqueued(job, task),
        id=str(job.pk),
        status=STATUSES.get(State(job.state), TaskResultStatus.READY),
        enqueued_at=job.created_at,
        started_at=_first_start(job),
        finished_at=job.finished_at,
        last_attempted_at=job.started_at or (_start_of(errors[-1]) if errors else None),
        args=job.args.get("args", []),
        kwargs=job.args.get("kwargs", {}),
        backend=alias_of(job.source_id, task),
        errors=[_error(entry) for entry in errors],
        worker_ids=worker_ids(job.attempt - (job.state == State.QUEUED), job.worker_id),
    )
    if result.status == TaskResultStatus.SUCCESSFUL:
        change(result, _return_value=job.result)
    return result


def change(result: TaskResult[..., Any], **values: Any) -> None:
    """Change attributes of a frozen result."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def alias_of(source_id: str, task: Task[..., Any]) -> str:
    """Return the alias of the backend that enqueued a job; the task's if it was removed."""
    return source_id if source_id in task_backends.settings else task.backend


def worker_ids(attempt: int, last: int | None) -> list[str]:
    """Return the worker's id of each attempt. Only the last one is stored."""
    known = [] if last is None or not attempt else [str(last)]
    return ["unknown"] * (attempt - len(known)) + known


def _as_enqueued(job: Job, task: Task[..., Any]) -> Task[..., Any]:
    alias = alias_of(job.source_id, task)
    names = task_backends[alias].queues
    priority = max(TASK_MIN_PRIORITY, min(TASK_MAX_PRIORITY, Priority.DEFAULT - job.priority))
    found = task.using(
        backend=alias,
        priority=priority,
        queue_name=job.queue.name if not names or job.queue.name in names else None,
        run_after=job.run_at if job.run_at > job.created_at else None,
    )
    options_of = getattr(task_backends[alias], "job_options", None)
    if options_of is None or not hasattr(found, "tenant"):
        return found
    usual = replace(options_of(found), tenant=task_backends[alias].options.get("tenant", ""))
    changes = {n: v for n, v in _options_of(job).items() if v not in (None, getattr(usual, n))}
    return found.using(**changes)


def _options_of(job: Job) -> dict[str, Any]:
    """Return the stored options of a job."""
    return {
        "tenant": job.tenant,
        "session": session_of(
            own_key(job.tenant, job.session_key), skips=job.session_skip, halts=job.session_halt
        ),
        "limit_user": own_key(job.tenant, job.limit_user),
        "max_attempts": job.max_attempts,
        "timeout": job.timeout_seconds,
        "hard_timeout": job.hard_timeout_seconds,
        "labels": None if job.labels is None else tuple(job.labels),
        "created_by": job.created_by,
    }


def _error(entry: Mapping[str, Any]) -> TaskError:
    name = str(entry.get("class", ""))
    return TaskError(
        exception_class_path=name if "." in name else f"builtins.{name}",
        traceback=str(entry.get("traceback", "")),
    )


def _first_start(job: Job) -> datetime | None:
    """Return when the first attempt began; the last one's start if its error is not stored."""
    if job.attempt > 1 or job.started_at is None:
        for entry in entries_of(job.errors):
            if entry.get("attempt") == 1 and (start := _start_of(entry)):
                return start
    return job.started_at


def _start_of(entry: Mapping[str, Any]) -> datetime | None:
    """Return when the attempt of an error began."""
    ended = parse_datetime(str(entry.get("at")))
    return None if ended is None else ended - timedelta(seconds=entry.get("seconds") or 0.0)
