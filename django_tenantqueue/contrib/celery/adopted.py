"""Tasks of Celery as tasks of this package: `delay(add, tenant="acme")(1, 2)`, `@task` above them.

They run as they are: with their `self`, `self.request` and `self.retry()`, `autoretry_for`, time
limits and handlers. What cannot be kept is refused when a task is adopted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from celery import current_app
from celery._state import _task_stack
from celery.exceptions import MaxRetriesExceededError
from celery.exceptions import Retry as CeleryRetry
from django.utils import timezone

from ...exceptions import InvalidOption, NotAllowed, Retry
from ...execution.current_job import RunningJob, running_or_none
from ...states import MOST_ATTEMPTS
from ...tasks import Task

_adopted: dict[str, AdoptedTask] = {}


class JobRetry(Retry, CeleryRetry):
    """What `self.retry()` raises in a job: `autoretry_for` lets Celery's own Retry pass."""

    def __init__(self, message: str, *, after: float, exc: BaseException | None) -> None:
        Retry.__init__(self, message, after=after)
        self.exc = exc
        self.when = after
        self.message = message
        self.excs = None if exc is None else repr(exc)
        self.is_eager = False
        self.sig = None

    def __str__(self) -> str:
        return self.message


class AdoptedTask(Task[..., Any]):
    """A task of Celery. An error is retried only if the task asks for it, as Celery does."""

    def wants_retry(self, error: BaseException) -> bool:
        """Return False: `self.retry()` and `autoretry_for` raise Retry."""
        return False


def adopt(target: Any, **options: Any) -> AdoptedTask:
    """Return the task that enqueues and runs a task of Celery.

    `options`: those of `@task`; they take the place of what the task says itself. Raises
    InvalidOption for what cannot be kept.
    """
    known = _adopted.get(target.name)
    if known is not None and not options:
        return known
    made = AdoptedTask(_function_of(target), name=target.name, **{**_options_of(target), **options})
    _adopted[target.name] = made
    return made


def find_adopted(name: str) -> AdoptedTask | None:
    """Return the task of Celery of that name; None: there is none."""
    found = current_app.tasks.get(name)
    return None if found is None else adopt(found)


def _options_of(target: Any) -> dict[str, Any]:
    """Return a task's options by our names; raise InvalidOption for those that have none."""
    name, conf = target.name, target.app.conf
    if target.rate_limit:
        raise InvalidOption(
            f"{name}: rate_limit={target.rate_limit!r} counts for each Celery worker; use "
            "@task(max_per_second=…), which counts for all, and leave rate_limit out"
        )
    if target.serializer not in (None, "json"):
        raise InvalidOption(
            f"{name}: serializer={target.serializer!r} cannot be kept: arguments are stored as JSON"
        )
    if inspect.iscoroutinefunction(target.run):
        raise InvalidOption(f"{name} is a coroutine, which Celery does not run: use @task alone")
    attempts = (
        MOST_ATTEMPTS if target.max_retries is None else min(MOST_ATTEMPTS, target.max_retries + 1)
    )
    found = {
        "max_attempts": attempts,
        "timeout": target.soft_time_limit or conf.task_soft_time_limit,
        "hard_timeout": target.time_limit or conf.task_time_limit,
        "expires_at": target.expires,
    }
    return {option: value for option, value in found.items() if value is not None}


def _function_of(target: Any) -> Callable[..., Any]:
    """Return a function that runs a task of Celery inside the current job."""
    name: str = target.name

    def call(*args: Any, **kwargs: Any) -> Any:
        running, celery_task = running_or_none(), current_app.tasks[name]
        if running is None or running.name != name:
            return celery_task(*args, **kwargs)
        return _run(running, celery_task, args, kwargs)

    call.__module__, call.__doc__ = target.__module__, target.__doc__
    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__signature__ = inspect.signature(target.run)  # type: ignore[attr-defined]
    return call


def _run(running: RunningJob, task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a task of Celery as its worker does: with a request, and its handlers called."""
    task_id, value, state = str(running.id), None, "FAILURE"
    _redirect(task)
    task.push_request(
        id=task_id,
        task=task.name,
        args=args,
        kwargs=kwargs,
        retries=running.attempt - 1,
        called_directly=False,
        is_eager=False,
        delivery_info={},
        root_id=task_id,
    )
    _task_stack.push(task)
    try:
        task.before_start(task_id, args, kwargs)
        value = task.run(*args, **kwargs)
        state = "SUCCESS"
        task.on_success(value, task_id, args, kwargs)
    except JobRetry as error:
        state, value = "RETRY", error.exc
        task.on_retry(error.exc or error, task_id, args, kwargs, None)
        raise
    except Exception as error:
        value = error
        if state != "SUCCESS":
            task.on_failure(error, task_id, args, kwargs, None)
        raise
    finally:
        try:
            task.after_return(state, value, task_id, args, kwargs, None)
        finally:
            _task_stack.pop()
            task.pop_request()
    return value


def _redirect(task: Any) -> None:
    """Let `retry()` and `update_state()` of a task act on our job, when one runs."""
    if "retry" in vars(task):
        return
    own_retry, own_update = task.retry, task.update_state

    def retry(*args: Any, **kwargs: Any) -> Any:
        running = running_or_none()
        if running is None or running.name != task.name or task.request.called_directly:
            return own_retry(*args, **kwargs)
        return _retry(task, *args, **kwargs)

    def update_state(*args: Any, **kwargs: Any) -> None:
        running = running_or_none()
        if running is None or running.name != task.name:
            own_update(*args, **kwargs)
        else:
            _update_state(running, *args, **kwargs)

    task.retry, task.update_state = retry, update_state


def _retry(
    task: Any,
    args: Any = None,
    kwargs: Any = None,
    exc: BaseException | None = None,
    throw: bool = True,
    eta: datetime | None = None,
    countdown: float | None = None,
    max_retries: int | None = None,
    **options: Any,
) -> Any:
    """Raise what has the job run again; see Task.retry() of Celery."""
    request = task.request
    changed = (args is not None and tuple(args) != tuple(request.args or ())) or (
        kwargs is not None and dict(kwargs) != dict(request.kwargs or {})
    )
    unknown = [name for name, value in options.items() if value is not None]
    if changed or not throw or unknown:
        what = "other arguments" if changed else "throw=False" if not throw else unknown[0]
        raise NotAllowed(
            f"{task.name}: self.retry() with {what} is not possible in a job: it runs again with "
            "its arguments. Use exc, countdown, eta and max_retries"
        )
    most = task.max_retries if max_retries is None else max_retries
    if most is not None and request.retries >= most:
        if exc is not None:
            raise exc
        raise MaxRetriesExceededError(
            f"{task.name} was retried {most} times", task_args=(), task_kwargs={}
        )
    if eta is not None:
        countdown = (eta - timezone.now()).total_seconds()
    after = task.default_retry_delay if countdown is None else countdown
    if isinstance(after, timedelta):
        after = after.total_seconds()
    message = f"retried for {exc!r}" if exc is not None else ""
    raise JobRetry(message, after=max(0.0, float(after)), exc=exc) from exc


def _update_state(
    running: RunningJob,
    task_id: str | None = None,
    state: str | None = None,
    meta: Any = None,
    **request: Any,
) -> None:
    """Report `current` and `total` as progress; other entries of `meta` as statistics."""
    known = dict(meta) if isinstance(meta, dict) else {}
    done = known.pop("current", None)
    if isinstance(done, int | float):
        running.progress(done, known.pop("total", None), state)
    for name, value in known.items():
        running.stats[name] = value
