"""Tasks of Celery as tasks of this package: `delayed(add)(1, 2)`, and `@task` above them.

Celery's own tracer runs them unchanged: with `self`, `self.request`, `self.retry()`,
`autoretry_for`, time limits, handlers and Celery's signals. What is not supported is rejected when
a task is adopted, or where it is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from celery import Task as CeleryTask
from celery import current_app, states
from celery.app import trace
from celery.exceptions import MaxRetriesExceededError, Reject
from celery.exceptions import Retry as CeleryRetry
from celery.fixups.django import DjangoWorkerFixup
from django.utils import timezone

from ...calls.sources import register_finder
from ...exceptions import Cancelled, InvalidOption, NotAllowed, Postpone, Retry
from ...execution.current_job import RunningJob, running_or_none
from ...execution.outcome import log_error
from ...states import MOST_ATTEMPTS
from ...tasks import Task

HANDLERS = ("on_success", "on_failure", "on_retry", "after_return")
"""Methods that Celery calls after a run. What they raise changes no outcome."""

_adopted: dict[str, AdoptedTask] = {}
_tracers: dict[Any, Callable[..., Any]] = {}


class JobRetry(Retry, CeleryRetry):
    """Raised by `self.retry()` in a job. `autoretry_for` passes on Celery's own Retry."""

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

    def _wants_retry(self, error: BaseException) -> bool:
        """Return False: `self.retry()` and `autoretry_for` raise Retry."""
        return False


def adopt(target: Any, **options: Any) -> AdoptedTask:
    """Return the task that enqueues and runs a task of Celery.

    `options`: those of `@task`, which override the task's own. Raises InvalidOption for options of
    Celery that are not supported.
    """
    if not isinstance(target, CeleryTask):
        raise InvalidOption(
            f"{target!r} is a {type(target).__name__} of Celery, and no task: give the task, and "
            "join tasks by .using(on_success=…), .using(on_end=…) or group([…])"
        )
    known = _adopted.get(target.name)
    if known is not None and not options:
        return known
    made = AdoptedTask(_function_of(target), name=target.name, **{**_options_of(target), **options})
    _adopted[target.name] = made
    return made


def find_adopted(name: str) -> AdoptedTask | None:
    """Return the task of Celery of this name, or None."""
    found = current_app.tasks.get(name)
    return None if found is None else adopt(found)


def _options_of(target: Any) -> dict[str, Any]:
    """Return a task's options by the names of `@task`. Raises InvalidOption."""
    name, conf = target.name, target.app.conf
    if target.rate_limit:
        raise InvalidOption(
            f"{name}: rate_limit={target.rate_limit!r} counts for each Celery worker; use "
            "@task(max_per_second=…), which counts for all, and leave rate_limit out"
        )
    if target.serializer not in (None, "json"):
        raise InvalidOption(
            f"{name}: serializer={target.serializer!r} is not supported: arguments are stored "
            "as JSON. Leave serializer out"
        )
    if inspect.iscoroutinefunction(target.run):
        raise InvalidOption(f"{name} is a coroutine, which Celery does not run: use @task alone")
    retries = [target.max_retries]
    if getattr(target, "autoretry_for", ()):
        retries.append(getattr(target, "retry_kwargs", {}).get("max_retries", target.max_retries))
    attempts = MOST_ATTEMPTS if None in retries else min(MOST_ATTEMPTS, max(0, *retries) + 1)
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
        if running is None or running.task != name:
            return celery_task(*args, **kwargs)
        return _run(running, celery_task, args, kwargs)

    call.__module__, call.__doc__ = target.__module__, target.__doc__
    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__signature__ = inspect.signature(target.run)  # type: ignore[attr-defined]
    return call


class JobTrace(trace.TraceInfo):
    """The end of a run by Celery's tracer. Only signals are sent: the job stores the rest."""

    def handle_error_state(self, task: Any, req: Any, **more: Any) -> Any:
        """Call the task's handler, and send the signal."""
        handle = self.handle_retry if self.state == states.RETRY else self.handle_failure
        req.einfo = handle(task, req, store_errors=False, call_errbacks=False)
        return req.einfo

    def _log_error(self, task: Any, req: Any, einfo: Any) -> None:
        """Do nothing: the worker logs the failure."""


def _run(running: RunningJob, task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a task of Celery as its worker does, and raise the exception that ends the job."""
    tracer = _tracers.get(task)
    if tracer is None:
        tracer = _tracers[task] = _tracer_of(task)
    claimed, task_id = running._claimed, str(running.id)
    request = {
        "id": task_id,
        "task": task.name,
        "retries": running.attempt - 1,
        "ignore_result": True,
        "is_eager": False,
        "delivery_info": {"exchange": "", "routing_key": running.queue},
        "timelimit": [claimed.hard_timeout_seconds, claimed.timeout_seconds],
        "correlation_id": task_id,
        "root_id": task_id,
    }
    found = tracer(task_id, args, kwargs, request)
    if found.info is None:
        return None if task.ignore_result else found.retval
    error = found.info.retval
    if found.info.state == states.IGNORED:
        raise Cancelled(f"the task raised Ignore: {error}")
    if isinstance(error, Reject) and error.requeue:
        raise Postpone(f"the task raised {error!r}", after=1.0)
    raise error


def _tracer_of(task: Any) -> Callable[..., Any]:
    """Return Celery's tracer of a task, also outside of its workers. Called once for each task."""
    trace._install_stack_protection()  # `super().__call__()` keeps the request
    own_retry, own_update, own_replace = task.retry, task.update_state, task.replace

    def retry(*args: Any, **kwargs: Any) -> Any:
        if _job_of(task) is None or task.request.called_directly:
            return own_retry(*args, **kwargs)
        return _retry(task, *args, **kwargs)

    def update_state(*args: Any, **kwargs: Any) -> None:
        running = _job_of(task)
        if running is None:
            own_update(*args, **kwargs)
        else:
            _update_state(running, *args, **kwargs)

    def replace(sig: Any) -> Any:
        if _job_of(task) is None:
            return own_replace(sig)
        raise NotAllowed(
            f"{task.name}: self.replace({sig}) is not possible in a job. Enqueue a job of the "
            "other task, or let it follow by .using(on_success=…)"
        )

    task.retry, task.update_state, task.replace = retry, update_state, replace
    for name in HANDLERS:
        setattr(task, name, _guarded(task, name))
    made: Callable[..., Any] = trace.build_tracer(
        task.name, task, app=task.app, eager=True, Info=JobTrace
    )
    return made


def _job_of(task: Any) -> RunningJob | None:
    """Return the job that runs this task, or None."""
    running = running_or_none()
    return None if running is None or running.task != task.name else running


def _guarded(task: Any, name: str) -> Callable[..., None]:
    """Return a handler that raises nothing in a job, and always gets the error's info."""
    handler = getattr(task, name)

    def call(*args: Any, **kwargs: Any) -> None:
        running = _job_of(task)
        if running is None:
            handler(*args, **kwargs)
            return
        if name == "after_return" and len(args) == 6:
            args = (*args[:5], getattr(task.request, "einfo", None))
        try:
            handler(*args, **kwargs)
        except Exception:  # noqa: BLE001 - it is logged
            log_error(running, "%s() of job %s (%s) failed", name, running.id, running.task)

    return call


def _keep_connections() -> None:
    """Stop Celery from closing a job's connections, which have its tenant and transaction."""
    close = DjangoWorkerFixup.close_database

    def close_database(self: Any, **kwargs: Any) -> None:
        if running_or_none() is None:
            close(self, **kwargs)

    DjangoWorkerFixup.close_database = close_database


_keep_connections()


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
    """Raise JobRetry; see Task.retry() of Celery."""
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
    running = running_or_none()
    assert running is not None, "it is called in a job"
    most = task.max_retries if max_retries is None else max_retries
    most = running.max_attempts - 1 if most is None else min(most, running.max_attempts - 1)
    if request.retries >= most:
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


register_finder(find_adopted)
