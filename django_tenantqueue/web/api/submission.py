"""From what a client sends to jobs: tasks that it may name, their options, and batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from django.db import transaction

from ...calls.options import Options
from ...calls.sources import find_task, registered_tasks
from ...calls.unique import Unique
from ...conf import get_settings
from ...exceptions import NotAllowed, RequestRefused, TenantQueueError, UnknownTask
from ...execution import eager
from ...models import ApiToken, Job
from ...operations import enqueue as operations
from ...tasks import Task
from .access import Caller
from .schemas import Submission, UniqueInput

HTTP_JOB = "django_tenantqueue.http.http_job"
CALL = frozenset({"task", "args", "kwargs"})
"""Members of a submission that are no options."""


def is_offered(name: str, caller: Caller) -> bool:
    """Return whether a client may enqueue the task of a name, if there is one."""
    if name == HTTP_JOB:
        return caller.may(ApiToken.Scope.HTTP)
    return any(fnmatchcase(name, pattern) for pattern in get_settings().api_tasks)


def offered_tasks(caller: Caller) -> list[Task[..., Any]]:
    """Return the tasks that a client may enqueue, by their names."""
    tasks = registered_tasks()
    named = (tasks[name] for name in sorted(tasks) if is_offered(name, caller))
    return [task for task in named if isinstance(task, Task)]


def _task(name: str, caller: Caller) -> Task[..., Any]:
    """Return a task that a client may enqueue. What is not offered is as what does not exist."""
    if name == HTTP_JOB and not is_offered(name, caller):
        raise RequestRefused(403, "The token does not have the scope 'http'.")
    try:
        found = find_task(name) if is_offered(name, caller) else None
    except (UnknownTask, NotAllowed):
        found = None
    if not isinstance(found, Task):
        raise RequestRefused(
            422, f"There is no task {name!r} here that TENANTQUEUE['API_TASKS'] has."
        )
    return found


@dataclass(slots=True)
class Call:
    """A task with the options of a submission."""

    task: Task[..., Any]
    options: Options

    def check(self, given: Submission) -> None:
        """Raise RequestRefused when the arguments do not fit the task."""
        try:
            self.task.check_call(tuple(given.args), given.kwargs)
        except TypeError as error:
            raise RequestRefused(422, str(error)) from None


def _options(given: Submission) -> dict[str, Any]:
    """Return the options that a submission has, by the names of its members."""
    values = ((name, getattr(given, name)) for name in given.model_fields_set - CALL)
    return {name: value for name, value in values if value is not None}


def _read(task: str, given: dict[str, Any], caller: Caller) -> Call:
    """Return what to enqueue. Raises RequestRefused, InvalidOption."""
    chosen = dict(given)
    if "delay_seconds" in chosen:
        if "run_at" in chosen:
            raise RequestRefused(422, "Give run_at or delay_seconds, not both.")
        chosen["run_at"] = timedelta(seconds=chosen.pop("delay_seconds"))
    if "timeout_seconds" in chosen:
        chosen["timeout"] = chosen.pop("timeout_seconds")
    if "unique" in chosen:
        chosen["unique"] = _unique(chosen["unique"])
    chosen |= {"tenant": caller.tenant, "created_by": caller.name}
    found = _task(task, caller)
    options = found.options.merged(chosen)
    caller.check(given)
    return Call(found, options)


def _unique(given: UniqueInput) -> Unique:
    # any number of jobs may have the key of a while_ mode: it has no conflict
    conflict = {} if given.mode == "while_executing" else {"on_conflict": given.on_conflict}
    return Unique(given.mode, key=given.key, ttl=given.ttl_seconds, **conflict)


def submit(given: Submission, caller: Caller) -> Job:
    """Enqueue one job. Raises RequestRefused and the errors of the package."""
    call = _read(given.task, _options(given), caller)
    call.check(given)
    return _enqueue(call, given)


def _enqueue(call: Call, given: Submission) -> Job:
    task, args = call.task, tuple(given.args)
    if get_settings().eager:
        return eager.run_now(task.source, call.options, args, given.kwargs)
    return operations.enqueue(task.source, call.options, args, given.kwargs, task=task)


def submit_all(given: Sequence[Submission], caller: Caller) -> list[int]:
    """Enqueue many jobs, all or none; return their ids, in order.

    Neighbours of the same task with the same options are one INSERT. Raises RequestRefused and the
    errors of the package; their `index` is that of the job that is wrong.
    """
    ids: list[int] = []
    with transaction.atomic(using=get_settings().database):
        for start, end in _runs(given):
            reading = _Reading(given, start, end)
            try:
                ids += _enqueue_run(
                    _read(given[start].task, _options(given[start]), caller), reading
                )
            except TenantQueueError as error:
                error.index = reading.at  # type: ignore[attr-defined]
                raise
    return ids


@dataclass(slots=True)
class _Reading:
    """The jobs `at` to `end` of a batch. `at` is the one that is being read."""

    given: Sequence[Submission]
    at: int
    end: int

    def calls(self, call: Call) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        for index in range(self.at, self.end):
            self.at, one = index, self.given[index]
            call.check(one)
            yield tuple(one.args), one.kwargs


def _enqueue_run(call: Call, reading: _Reading) -> list[int]:
    if get_settings().eager:
        calls = reading.calls(call)
        made = (eager.run_now(call.task.source, call.options, *one) for one in calls)
        return [job.id for job in made]
    return operations.enqueue_many(call.task.source, call.options, reading.calls(call))


def _runs(given: Sequence[Submission]) -> Iterator[tuple[int, int]]:
    """Yield where neighbours of the same task with the same options begin and end."""
    start, options = 0, _options(given[0])
    for index in range(1, len(given)):
        own = _options(given[index])
        if given[index].task != given[start].task or own != options:
            yield start, index
            start, options = index, own
    yield start, len(given)
