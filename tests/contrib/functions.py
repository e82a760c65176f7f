"""Functions that the task framework declares. The module is not called `tasks` on purpose."""

from __future__ import annotations

import asyncio
from typing import Any

from django import VERSION

from django_tenantqueue import Permanent, Retry, current_job, get_tenant

if VERSION >= (6, 0):
    from django.tasks import task
else:
    from django_tasks import task


@task
def add(first: int, second: int = 0) -> int:
    """Return the sum."""
    return first + second


@task
async def async_add(first: int, second: int = 0) -> int:
    """Return the sum after giving way once."""
    await asyncio.sleep(0)
    return first + second


@task(priority=10, queue_name="mail")
def echo(value: Any) -> Any:
    """Return the argument."""
    return value


@task
def double_dictionary(key: Any) -> Any:
    """Fail when the key is a list."""
    return {key: key * 2}


@task
def fail(message: str) -> None:
    """Raise ValueError."""
    raise ValueError(message)


@task
async def async_fail(message: str) -> None:
    """Raise ValueError in a coroutine."""
    raise ValueError(message)


class LocalError(Exception):
    """An error of the project's own."""


@task
def fail_locally() -> None:
    """Raise an error of the project's own."""
    raise LocalError


@task(backend="limited")
def fail_until(attempt: int) -> int:
    """Fail until this attempt."""
    if current_job().attempt < attempt:
        raise Retry(after=0)
    return current_job().attempt


@task(backend="limited")
def fail_for_good() -> None:
    """Raise Permanent."""
    raise Permanent("never")


@task
def return_a_set() -> set[int]:
    """Return what is no JSON."""
    return {1}


def _told(context: Any) -> dict[str, Any]:
    result = context.task_result
    return {
        "id": result.id,
        "attempt": context.attempt,
        "attempts": result.attempts,
        "status": result.status,
        "args": result.args,
        "kwargs": result.kwargs,
        "enqueued": result.enqueued_at is not None,
        "started": result.started_at is not None,
        "queue": result.task.queue_name,
        "priority": result.task.priority,
        "errors": [error.exception_class_path for error in result.errors],
        "tenant": get_tenant(),
    }


@task(takes_context=True)
def tell(context: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return what the context says."""
    return _told(context)


@task(takes_context=True)
async def async_tell(context: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return what the context says, as a coroutine."""
    return _told(context)


@task(takes_context=True, backend="limited")
def tell_in_second_attempt(context: Any) -> dict[str, Any]:
    """Fail once, then return what the context says."""
    if context.attempt == 1:
        raise ValueError("the first time")
    return _told(context)


@task
def report_nothing() -> None:
    """Do nothing."""


@task
def report(steps: int) -> None:
    """Report progress."""
    current_job().progress(steps, steps, "done")


def plain() -> None:
    """Be no task."""


def elsewhere(value: Any) -> Any:
    """Return the argument."""
    return value
