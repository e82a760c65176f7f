"""`@task`, `delayed()` and `Delayable`: how users' code becomes jobs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Never,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from asgiref.sync import sync_to_async
from django.core.signing import BadSignature, Signer

from .calls import other_systems, sources
from .calls.call import Call
from .calls.given_options import merged
from .calls.option_types import (
    Backoff,
    JobOptions,
    RetryWhen,
    Seconds,
    TaskOptions,
)
from .calls.options import (
    NAMES,
    Options,
    check_seconds,
    explained,
)
from .calls.searchable_option import read_searchable
from .calls.secret_option import read_secret
from .calls.sources import INTERNAL, DelayableMark, Source
from .calls.task_hooks import TaskHooks
from .calls.task_options import (
    positional_range,
    read_backoff,
    read_hooks,
    read_rate,
    read_retry_when,
    readers_of,
)
from .conf import get_settings
from .coroutines import twin
from .exceptions import InvalidArgument, InvalidOption, Permanent
from .execution import eager
from .execution.current_job import current_job
from .execution.outcome import backoff_seconds
from .models import Job
from .operations import enqueue as operations

__all__ = ["BoundTask", "Delayable", "Task", "adelayed", "current_job", "delayed", "task"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
One = TypeVar("One", contravariant=True)


class _TakesOne(Protocol[One]):
    """A task that can be called with one argument."""

    def delay(self, argument: One, /) -> Job:
        """Enqueue it."""


class _KnowsOtherNames:
    """Names the counterpart of a method that tasks of other systems have."""

    __slots__ = ()

    if not TYPE_CHECKING:  # else every attribute would exist

        def __getattr__(self, name):
            raise other_systems.unknown_attribute(self, name, other_systems.METHODS)


class BoundTask(_KnowsOtherNames, Generic[P]):
    """A task with options for its jobs; see Task.using()."""

    __slots__ = ("_options", "_task")

    def __init__(self, made_by: Task[P, Any], options: Options) -> None:
        self._task = made_by
        self._options = options

    def using(self, **options: Unpack[JobOptions]) -> BoundTask[P]:
        """Return the same with further options."""
        return BoundTask(self._task, merged(self._options, options))

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Enqueue a job in the current transaction and return it.

        Raises TypeError when the arguments do not fit the function, and InvalidArgument,
        QueueFull, QueueRetired, UnknownQueue and DuplicateJob.
        """
        made_by = self._task
        made_by._check_arguments(args, kwargs)
        if get_settings().eager:
            return eager.run_now(made_by.source, self._options, args, kwargs)
        return operations.enqueue(made_by.source, self._options, args, kwargs, task=made_by)

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """See delay()."""
        return await sync_to_async(self.delay)(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Return a description of the call, for a monitor, a group or a follow-up; enqueue nothing.

        Raises TypeError when the arguments do not fit the function.
        """
        try:
            self._task._check_arguments(args, kwargs)
        except TypeError as error:
            hint = other_systems.MISSING_RESULTS if "missing a required" in str(error) else ""
            raise TypeError(f"{error}{hint}") from None
        return Call(self._task.source, self._options, args, kwargs)

    @overload
    def enqueue_many(
        self: _TakesOne[T], calls: Iterable[T | tuple[Any, ...] | dict[str, Any]]
    ) -> list[int]: ...
    @overload
    def enqueue_many(self, calls: Iterable[tuple[Any, ...] | dict[str, Any]]) -> list[int]: ...
    def enqueue_many(self, calls: Iterable[Any]) -> list[int]:
        """Enqueue a job for each call and return their ids, in order.

        A call is a tuple of positional arguments, a dict of keyword arguments, or, for a task of
        one argument, that argument. `calls` may be a generator. All or nothing.
        """
        made_by = self._task
        if get_settings().eager:
            return [
                eager.run_now(made_by.source, self._options, *made_by._as_call(call)).id
                for call in calls
            ]
        return operations.enqueue_many(
            made_by.source, self._options, (made_by._as_call(call) for call in calls)
        )

    @overload
    async def aenqueue_many(
        self: _TakesOne[T], calls: Iterable[T | tuple[Any, ...] | dict[str, Any]]
    ) -> list[int]: ...
    @overload
    async def aenqueue_many(
        self, calls: Iterable[tuple[Any, ...] | dict[str, Any]]
    ) -> list[int]: ...
    async def aenqueue_many(self, calls: Iterable[Any]) -> list[int]:
        """See enqueue_many()."""
        return await sync_to_async(self.enqueue_many)(calls)


class Task(_KnowsOtherNames, Generic[P, R]):
    """A function that can be called directly, or enqueued with .delay(). Created by @task."""

    _source_type = "task"

    def __init__(
        self,
        func: Callable[P, R],
        *,
        name: str | None = None,
        retry_when: RetryWhen | type[BaseException] | None = None,
        backoff: Backoff | None = None,
        backoff_max: Seconds | None = None,
        atomic: bool = False,
        hooks: TaskHooks | None = None,
        secret: bool | str | Sequence[str] | None = None,
        searchable: str | Sequence[str] | None = None,
        max_per_second: float | None = None,
        burst: int | None = None,
        **options: Any,
    ) -> None:
        self.func = func
        self.name = name or f"{func.__module__}.{func.__qualname__}"
        if name is None and "<locals>" in func.__qualname__:
            raise InvalidOption(
                f"{self.name} is local to a function, so no worker can find it: define the task at "
                "module level, or give it a name"
            )
        self.is_async = inspect.iscoroutinefunction(func)
        if atomic and self.is_async:
            raise InvalidOption(
                f"{self.name}: a coroutine cannot be atomic, since Django's transactions are "
                "synchronous; use a plain function"
            )
        self.atomic = atomic
        self.hooks = read_hooks(self.name, hooks)
        self.retry_when = read_retry_when(self.name, retry_when)
        self.backoff = read_backoff(self.name, backoff)
        self.backoff_max = (
            None if backoff_max is None else check_seconds("backoff_max", backoff_max)
        )
        of_apps = [name for name in options if name not in NAMES]
        readers, given = readers_of(of_apps), {name: options.pop(name) for name in of_apps}
        self.options = replace(merged(Options(), options), queue_is_fixed=False)
        self._signature = inspect.signature(func)
        hidden = read_secret(self.name, secret, self._signature)
        found_by = read_searchable(self.name, searchable, self._signature, hidden)
        self.source = Source(
            *(self._source_type, "", self.name, self.name, self.is_async),
            secret=hidden,
            searchable=found_by,
        )
        self._positional = positional_range(self._signature)
        self.extra: Mapping[str, Any] = {
            option: readers[option](self, value)
            for option, value in given.items()
            if value is not None
        }
        self.rate = None if max_per_second is None else read_rate(max_per_second, burst)
        if burst is not None and self.rate is None:
            raise InvalidOption(f"{self.name}: burst={burst!r} needs max_per_second")
        update_wrapper(self, func)
        sources.register_task(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly."""
        return self.func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def using(self, **options: Unpack[JobOptions]) -> BoundTask[P]:
        """Return the task with options for its jobs.

        tenant, queue, priority, run_at and expires_at (an aware datetime, or a timedelta or
        seconds from now), max_attempts, timeout and hard_timeout (seconds or a timedelta), labels,
        created_by, session (a key or a Serial), limit_user, unique (a Unique), on_success and
        on_end (a call or a list of calls), callback_url. Raises InvalidOption.
        """
        return BoundTask(self, merged(self.options, options))

    def delay(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Enqueue a job in the current transaction and return it. See BoundTask.delay()."""
        return BoundTask(self, self.options).delay(*args, **kwargs)

    async def adelay(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """See delay()."""
        return await BoundTask(self, self.options).adelay(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """Return a description of the call. See BoundTask.call()."""
        return BoundTask(self, self.options).call(*args, **kwargs)

    @overload
    def enqueue_many(
        self: _TakesOne[T], calls: Iterable[T | tuple[Any, ...] | dict[str, Any]]
    ) -> list[int]: ...
    @overload
    def enqueue_many(self, calls: Iterable[tuple[Any, ...] | dict[str, Any]]) -> list[int]: ...
    def enqueue_many(self, calls: Iterable[Any]) -> list[int]:
        """Enqueue a job for each call. See BoundTask.enqueue_many()."""
        return BoundTask(self, self.options).enqueue_many(calls)

    @overload
    async def aenqueue_many(
        self: _TakesOne[T], calls: Iterable[T | tuple[Any, ...] | dict[str, Any]]
    ) -> list[int]: ...
    @overload
    async def aenqueue_many(
        self, calls: Iterable[tuple[Any, ...] | dict[str, Any]]
    ) -> list[int]: ...
    async def aenqueue_many(self, calls: Iterable[Any]) -> list[int]:
        """See enqueue_many()."""
        return await BoundTask(self, self.options).aenqueue_many(calls)

    def _check_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raise TypeError now, not in the worker, when the arguments do not fit the function."""
        if not kwargs and len(args) in self._positional:
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None

    def _check_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """See _check_call(). The error says where an option among the arguments belongs."""
        try:
            self._check_call(args, kwargs)
        except TypeError as error:
            if next(iter(inspect.signature(self.func).parameters), "") == "self":
                raise TypeError(
                    f"{error}; a task has no self: remove the parameter, and use current_job()"
                ) from None
            using = f"{self.func.__name__}.using({{}}).delay(…)"
            raise explained(error, self.func, kwargs, using) from None

    def _as_call(self, call: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return (args, kwargs) of an element given to enqueue_many()."""
        if isinstance(call, tuple):
            self._check_call(call, {})
            return call, {}
        if isinstance(call, dict):
            self._check_call((), call)
            return (), call
        self._check_call((call,), {})
        return (call,), {}

    def _wants_retry(self, error: BaseException) -> bool:
        """Whether to retry a run that raised `error`."""
        if self.retry_when is None:
            return True
        if isinstance(self.retry_when, tuple):
            return isinstance(error, self.retry_when)
        return bool(self.retry_when(error))

    def _backoff_seconds(self, attempt: int, error: BaseException) -> float | None:
        """Seconds before the next attempt by the task's own rule; None when it has none."""
        if self.backoff is None and self.backoff_max is None:
            return None
        if callable(self.backoff):
            own = _as_seconds(self.backoff(attempt, error))
            return own if self.backoff_max is None else min(own, self.backoff_max)
        base = None if self.backoff is None else _as_seconds(self.backoff)
        return backoff_seconds(attempt, base=base, most=self.backoff_max)


class InternalTask(Task[..., R]):
    """A task of the package itself. Only jobs from enqueue() do something.

    Users cannot enqueue it by name: see calls/sources.py. The arguments of its jobs are signed with
    SECRET_KEY. A run with a wrong signature ends in a permanent error.
    """

    _source_type = INTERNAL

    def __init__(self, func: Callable[..., R], *, name: str, **options: Any) -> None:
        def run(*, signature: str, **arguments: Any) -> R:
            signer = Signer(salt=name)
            try:
                signer.unsign(f"{_canonical(arguments)}{signer.sep}{signature}")
            except BadSignature:
                raise Permanent(
                    f"the arguments are not those with which {name} was enqueued, or this process "
                    "has another SECRET_KEY: nothing was done"
                ) from None
            return func(**arguments)

        super().__init__(run, name=name, secret=("signature",), **options)

    def enqueue(self, using: Mapping[str, Any], **arguments: Any) -> Job:
        """Enqueue a job with the options `using`, and return it. The arguments are plain JSON."""
        signature = Signer(salt=self.name).signature(_canonical(arguments))
        return self.using(**using).delay(**arguments, signature=signature)


def _canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)  # jsonb keeps no order


def _as_seconds(value: Seconds) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


@overload
def task(func: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(**options: Unpack[TaskOptions]) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(func: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a function a task: `@task` or `@task(queue="reports", max_attempts=3, …)`.

    Besides the options of Task.using():

    - `name`: the name that jobs store; default `module.function`
    - `retry_when`: exception classes, or a callable of the exception; default: every exception
    - `backoff`: seconds before the second attempt (doubled each time, varied at random), or
      a callable (attempt, error) -> seconds; a timedelta works, too
    - `backoff_max`: the longest of these waits; default: the setting BACKOFF_MAX
    - `atomic`: the task's database writes and its success commit in one transaction
    - `hooks`: an object whose class inherits from TaskHooks
    - `secret`: names of parameters whose values are masked wherever jobs are shown; True masks all
      arguments and the result
    - `searchable`: names of parameters by whose values jobs are found in the list of jobs
    - `schedule`: a cron expression, a Cron or an Every: when to enqueue a job
    - `max_per_second`, `burst`: the rate limit of the task, over all tenants

    Raises InvalidOption.
    """
    if func is not None:
        if not callable(func):
            raise InvalidOption(
                f"@task({func!r}): options must be named, as in @task(queue='mail')"
            )
        return sources.adopted(func, {}) or Task(func)

    def wrap(inner: Callable[P, R]) -> Any:
        return sources.adopted(inner, options) or Task(inner, **options)

    return wrap


def _enqueue(
    source: Source, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Job:
    try:
        source.check_call(args, kwargs)
    except TypeError as error:
        raise explained(error, source.func, kwargs, "delayed(…, {})") from None
    if get_settings().eager:
        return eager.run_now(source, options, args, kwargs)
    return operations.enqueue(source, options, args, kwargs)


class _Delayed:
    """Stand-in for a model instance or class: a call of one of its methods enqueues it."""

    __slots__ = ("_options", "_target")

    def __init__(self, target: Any, options: Options) -> None:
        self._target = target
        self._options = options

    def __call__(self, *more: Never, **options: Unpack[JobOptions]) -> _Delayed:
        if more:
            raise _only_options(".delay()", "instance.delay(queue=…).method(1, 2)")
        return _Delayed(self._target, merged(self._options, options))

    def __getattr__(self, method: str) -> Callable[..., Job]:
        if method.startswith("__"):
            raise AttributeError(method)
        source = sources.describe_method(self._target, method)

        def enqueue_call(*args: Any, **kwargs: Any) -> Job:
            return _enqueue(source, self._options, args, kwargs)

        return enqueue_call


class _AsyncDelayed:
    """The same for coroutines: the call is awaited."""

    __slots__ = ("_delayed",)

    def __init__(self, delayed: _Delayed) -> None:
        self._delayed = delayed

    def __call__(self, **options: Any) -> _AsyncDelayed:
        return _AsyncDelayed(self._delayed(**options))

    def __getattr__(self, method: str) -> Callable[..., Coroutine[Any, Any, Job]]:
        return twin(getattr(self._delayed, method))


class _DelayDescriptor:
    """Gives `Device.delay` and `device.delay` the class or instance they are read from."""

    def __get__(self, instance: Any, owner: type) -> _Delayed:
        return _Delayed(owner if instance is None else instance, Options())


class _AsyncDelayDescriptor:
    """The same for coroutines."""

    def __get__(self, instance: Any, owner: type) -> _AsyncDelayed:
        return _AsyncDelayed(_Delayed(owner if instance is None else instance, Options()))


class Delayable(DelayableMark):
    """Mixin for models and classes: `device.delay.export(…)`, `Device.delay(queue="x").sync()`.

    Coroutines use `await device.adelay.export(…)`.

    Its subclasses may be run by name without being listed in TENANTQUEUE["CALLABLES"].
    """

    delay = _DelayDescriptor()
    """A stand-in whose methods are enqueued, with options if it is called. See delayed()."""
    adelay = _AsyncDelayDescriptor()
    """See delay."""


def _only_options(what: str, form: str) -> InvalidArgument:
    return InvalidArgument(f"{what} takes options by name, and no arguments: {form}")


@overload
def delayed(target: type[Any], /, **options: Unpack[JobOptions]) -> _Delayed: ...
@overload
def delayed(  # type: ignore[overload-overlap]
    target: Callable[P, Any], /, **options: Unpack[JobOptions]
) -> Callable[P, Job]: ...
@overload
def delayed(target: object, /, **options: Unpack[JobOptions]) -> _Delayed: ...
def delayed(target: Any, /, *more: Any, **options: Any) -> Any:
    """Return a stand-in for `target` that enqueues its calls.

    `delayed(report, tenant="acme").execute("pdf")` for a model instance or a class;
    `delayed(function)(argument)` for a function listed in TENANTQUEUE["CALLABLES"], or a task, also
    one of Celery's.

    Raises InvalidOption, InvalidArgument, NotAllowed.
    """
    if more:
        raise _only_options(
            "delayed()",
            "delayed(function, queue=…)(1, 2) or delayed(instance, queue=…).method(1, 2)",
        )
    if isinstance(target, Task):
        return target.using(**options).delay
    adopted: Any = sources.adopted(target, {})
    if adopted is not None:
        return adopted.using(**options).delay
    chosen = merged(Options(), options)
    if inspect.isroutine(target):
        source = sources.describe_function(target)

        def enqueue_call(*args: Any, **kwargs: Any) -> Job:
            return _enqueue(source, chosen, args, kwargs)

        return enqueue_call
    if not isinstance(target, type) and not hasattr(target, "_meta"):
        raise InvalidArgument(
            f"{target!r} cannot be delayed: use a saved model instance, a class, or a function"
        )
    return _Delayed(target, chosen)


@overload
def adelayed(target: type[Any], /, **options: Unpack[JobOptions]) -> _AsyncDelayed: ...
@overload
def adelayed(  # type: ignore[overload-overlap]
    target: Callable[P, Any], /, **options: Unpack[JobOptions]
) -> Callable[P, Coroutine[Any, Any, Job]]: ...
@overload
def adelayed(target: object, /, **options: Unpack[JobOptions]) -> _AsyncDelayed: ...
def adelayed(target: Any, /, **options: Any) -> Any:
    """See delayed(): the call is awaited, as in `await adelayed(report).execute("pdf")`."""
    standin: Any = delayed(target, **options)
    return _AsyncDelayed(standin) if isinstance(standin, _Delayed) else twin(standin)
