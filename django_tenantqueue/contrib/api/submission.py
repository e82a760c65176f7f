"""Turns submissions into jobs: allowed tasks, options, batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any

from django.db import transaction

from ...calls.given_options import merged
from ...calls.options import Options
from ...calls.sources import find_task, registered_tasks
from ...calls.unique import Unique
from ...conf import get_settings, settings_of
from ...exceptions import NotAllowed, TenantQueueError, UnknownTask
from ...execution import eager
from ...models import Job
from ...operations import enqueue as operations
from ...operations.queues import Target, find_target, make_queues, missing_queues, queue_id_of
from ...tasks import Task
from .access import Caller, check_new_queues
from .exceptions import ApiError
from .models import ApiToken
from .schemas import Submission, UniqueInput
from .settings import ApiSettings

HTTP_JOB = "django_tenantqueue.http.http_job"
CALL = frozenset({"task", "args", "kwargs"})
"""Members of a submission that are not options."""


def is_offered(name: str, caller: Caller) -> bool:
    """Return whether a client may enqueue a task of this name."""
    if name == HTTP_JOB:
        return caller.may(ApiToken.Scope.HTTP)
    return any(fnmatchcase(name, pattern) for pattern in settings_of(ApiSettings).tasks)


def offered_tasks(caller: Caller) -> list[Task[..., Any]]:
    """Return the tasks that a client may enqueue, by their names."""
    tasks = registered_tasks()
    named = (tasks[name] for name in sorted(tasks) if is_offered(name, caller))
    return [task for task in named if isinstance(task, Task)]


def _task(name: str, caller: Caller) -> Task[..., Any]:
    """Return a task that a client may enqueue. A task that is not offered seems not to exist."""
    if name == HTTP_JOB and not is_offered(name, caller):
        raise ApiError(403, "The token does not have the scope 'http': use one that has it.")
    try:
        found = find_task(name) if is_offered(name, caller) else None
    except (UnknownTask, NotAllowed):
        found = None
    if not isinstance(found, Task):
        raise ApiError(
            422,
            f"TENANTQUEUE['API']['TASKS'] has no task {name!r}: check the name, or add it there.",
        )
    return found


@dataclass(frozen=True, slots=True)
class Call:
    """Neighbouring jobs of a batch, `start` to `end`: the same task and options."""

    task: Task[..., Any]
    options: Options
    target: Target
    start: int
    end: int


def _options(given: Submission) -> dict[str, Any]:
    values = ((name, getattr(given, name)) for name in given.model_fields_set - CALL)
    return {name: value for name, value in values if value is not None}


def _read(given: Submission, start: int, end: int, caller: Caller) -> Call:
    """Raises ApiError, InvalidOption."""
    own = _options(given)
    chosen = dict(own)
    if "delay_seconds" in chosen:
        if "run_at" in chosen:
            raise ApiError(422, "Give run_at or delay_seconds, not both.")
        chosen["run_at"] = timedelta(seconds=chosen.pop("delay_seconds"))
    if "timeout_seconds" in chosen:
        chosen["timeout"] = chosen.pop("timeout_seconds")
    if "unique" in chosen:
        chosen["unique"] = _unique(chosen["unique"])
    chosen |= {"tenant": caller.tenant, "created_by": caller.name}
    task = _task(given.task, caller)
    options = merged(task.options, chosen)
    caller.check(own)
    return Call(task, options, find_target(options, task.source.name), start, end)


def _unique(given: UniqueInput) -> Unique:
    # any number of jobs may have the key of a while_ mode: it has no conflict
    conflict: dict[str, Any] = (
        {} if given.mode == "while_executing" else {"on_conflict": given.on_conflict}
    )
    return Unique(given.mode, key=given.key, ttl=given.ttl_seconds, **conflict)


class Submitted:
    """Jobs that a client has sent, read but not stored.

    Their errors are raised when they are stored: a request that is repeated with its key gets its
    first answer, even if it would be rejected by now.
    """

    def __init__(self, given: Sequence[Submission], caller: Caller) -> None:
        self._given, self._caller = given, caller
        self._calls: list[Call] = []
        self._error: TenantQueueError | None = None
        self.missing: list[Target] = []
        """Queues that valid jobs need and that do not exist: see make_queues()."""
        self._at: int | None = None
        """The job that is being read."""
        try:
            for start, end in _runs(given):
                self._at = start
                self._calls.append(_read(given[start], start, end, caller))
            if not get_settings().eager:
                self._find_missing()
        except TenantQueueError as error:
            self._error = error

    def _find_missing(self) -> None:
        """Note missing queues. If some are missing, check all jobs before creating anything."""
        missing = missing_queues(get_settings().database, {call.target for call in self._calls})
        if not missing:
            return
        for call in self._calls:
            self._at = call.start
            if call.target not in missing:
                queue_id_of(call.target)  # it may be retired
            for args, kwargs in self._arguments(call):
                call.task.source.encode(args, kwargs)
        self._at = None
        check_new_queues(self._caller.tenant, len(missing))
        self.missing = missing

    def make_queues(self) -> None:
        """Create the missing queues, outside of transactions, which would stay idle."""
        make_queues(self.missing)

    def _arguments(self, call: Call) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Yield the arguments of each job. Raises ApiError when they do not fit the task."""
        for self._at in range(call.start, call.end):
            given = self._given[self._at]
            try:
                call.task._check_call(tuple(given.args), given.kwargs)
            except TypeError as error:
                raise ApiError(422, str(error)) from None
            yield tuple(given.args), given.kwargs

    def _read_calls(self) -> list[Call]:
        if self._error is not None:
            raise self._error
        return self._calls

    def store(self) -> Job:
        """Enqueue one job. Raises ApiError and the errors of the package."""
        (call,) = self._read_calls()
        ((args, kwargs),) = self._arguments(call)
        if get_settings().eager:
            return eager.run_now(call.task.source, call.options, args, kwargs)
        return operations.enqueue(call.task.source, call.options, args, kwargs, task=call.task)

    def store_all(self) -> list[int]:
        """Enqueue many jobs, all or none; return their ids, in order.

        Raises ApiError and the errors of the package; their `index` is that of the wrong job.
        """
        ids: list[int] = []
        try:
            with transaction.atomic(using=get_settings().database):
                for call in self._read_calls():
                    self._at = call.start
                    ids += self._store(call)
        except TenantQueueError as error:
            if self._at is not None:
                error.index = self._at  # type: ignore[attr-defined]
            raise
        return ids

    def _store(self, call: Call) -> list[int]:
        source, arguments = call.task.source, self._arguments(call)
        if get_settings().eager:
            return [eager.run_now(source, call.options, *one).id for one in arguments]
        return operations.enqueue_many(source, call.options, arguments)


def _runs(given: Sequence[Submission]) -> Iterator[tuple[int, int]]:
    """Yield where neighbours of the same task with the same options begin and end.

    They are one INSERT.
    """
    start, options = 0, _options(given[0])
    for index in range(1, len(given)):
        own = _options(given[index])
        if given[index].task != given[start].task or own != options:
            yield start, index
            start, options = index, own
    yield start, len(given)
