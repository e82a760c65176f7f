"""Calls that are described and not yet enqueued: details and callbacks, and what follows a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import QuerySet

from ..exceptions import InvalidArgument, InvalidOption
from ..features import Feature, hooks
from . import other_systems
from .options import Options, needs_app
from .sources import Source, describe_method, describe_rows


@dataclass(frozen=True, slots=True)
class Call:
    """One call: a task or method, its options and arguments. Created by Task.call()."""

    source: Source
    options: Options
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    if not TYPE_CHECKING:  # else every attribute would exist

        def __or__(self, other):
            """Raise TypeError: calls are not piped."""
            raise TypeError(f"calls are not joined by |: use {other_systems.MODULE['chain']}")

        def __call__(self, *args, **kwargs):
            """Raise TypeError: a call is a description."""
            raise TypeError(f"a call is not called: use {other_systems.CALL['delay']}")

        def __getattr__(self, name):
            """Name the counterpart of a method that signatures of other systems have."""
            raise other_systems.unknown_attribute(self, name, other_systems.CALL)


class CallableAlone(Protocol):
    """A task that needs no arguments."""

    def call(self) -> Call:
        """Return a call of it."""


CallLike = (
    Call
    | CallableAlone
    | tuple[Any, str]
    | tuple[Any, str, Sequence[Any]]
    | tuple[Any, str, Sequence[Any], Mapping[str, Any]]
)
"""What describes a call, or with a queryset one for each row: see read_calls()."""

_SHAPES = (
    "give task.call(…), (instance or class, 'method', args, kwargs) or (queryset, 'method', args, "
    "kwargs); args and kwargs may be left out"
)


def read_calls(details: Any, name: str = "details") -> Iterator[Call]:
    """Return the calls that `details` describe, one after another.

    `details` is an iterable of calls and tuples, or one of these. Raises InvalidArgument for what
    is none, with its position in `name`, and TypeError for arguments that do not fit.
    """
    if isinstance(details, Call):
        yield details
        return
    if isinstance(details, tuple) and len(details) > 1 and isinstance(details[1], str):
        yield from _read(details, name)
        return
    if isinstance(details, QuerySet) or not isinstance(details, Iterable):
        raise InvalidArgument(f"{name}={_short(details)}: {_SHAPES}, or an iterable of these")
    for number, detail in enumerate(details):
        yield from _read(detail, f"{name}[{number}]")


def read_call(name: str, value: Any) -> Call:
    """Return the one call that `value` describes. Raises InvalidArgument."""
    calls = [value] if isinstance(value, Call) else list(_read(value, name))
    if len(calls) != 1:
        raise InvalidArgument(f"{name}={_short(value)} must be one call: {len(calls)} were given")
    return calls[0]


_NOT_A_HOOK = (
    ". A function that the worker calls is a method of hooks=…, of @task: success(job, result), "
    "failure(job) or after(job)"
)


def read_follow_ups(name: str, value: Any) -> tuple[Call, ...]:
    """Return the calls that follow a job: one, or those of a list. Raises InvalidOption."""
    try:
        many = isinstance(value, list)
        calls = tuple(read_calls(value, name)) if many else (read_call(name, value),)
    except InvalidArgument as error:
        hint = _NOT_A_HOOK if callable(value) and not hasattr(value, "call") else ""
        raise InvalidOption(f"{name}: {error}{hint}") from None
    for call in calls:
        check_follow_up(name, call.options)
    return calls


def ending_calls(options: Options, tenant: str) -> list[Call]:
    """Return the calls to enqueue when a job of a tenant has ended, in any state.

    Raises InvalidArgument; Unsupported for a `callback_url` without the app that posts to it.
    """
    added = [call for add in hooks(Feature.follow_ups) for call in add(options, tenant)]
    if options.callback_url is not None and not added:
        raise needs_app("callback_url")
    return [*(options.on_end or ()), *added]


def check_follow_up(name: str, options: Options) -> None:
    """Raise InvalidOption for an option that a follow-up cannot have."""
    if options.unique is not None and options.unique.takes_key:
        raise InvalidOption(
            f"{name}: unique={options.unique.mode!r}: the end of a job enqueues each job that "
            "follows it, so that only 'while_executing' is possible; .using(unique=None) leaves it "
            "out"
        )


def _read(detail: Any, where: str) -> Iterator[Call]:
    if isinstance(detail, Call):
        yield detail
        return
    call = getattr(detail, "call", None)
    if callable(call):  # a task without arguments
        yield _checked(call(), where)
        return
    if not isinstance(detail, tuple) or not 2 <= len(detail) <= 4:
        raise InvalidArgument(f"{where} is {_short(detail)}: {_SHAPES}")
    target, method, *rest = detail
    args = rest[0] if rest else ()
    kwargs = rest[1] if len(rest) > 1 else {}
    if not isinstance(method, str):
        raise InvalidArgument(f"{where} names the method {_short(method)}: it must be a str")
    if not isinstance(args, tuple | list) or not isinstance(kwargs, Mapping):
        raise InvalidArgument(f"{where} has wrong arguments: give a tuple and a dict")
    if isinstance(target, QuerySet):
        yield from _of_rows(target, method, tuple(args), kwargs)
        return
    source = describe_method(target, method)
    source.check_call(tuple(args), kwargs)
    yield Call(source, Options(), tuple(args), kwargs)


def _checked(call: object, where: str) -> Call:
    if not isinstance(call, Call):
        raise InvalidArgument(f"{where} is not a call: {_SHAPES}")
    return call


def _of_rows(
    rows: QuerySet[Any], method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[Call]:
    """Return a call for each row. Only primary keys are read."""
    source_of = describe_rows(rows.model, method, rows.db, args, kwargs)
    options = Options()
    for key in rows.values_list("pk", flat=True).iterator(chunk_size=2000):
        yield Call(source_of(key), options, args, kwargs)


def check_detail(options: Options, tenant: str) -> None:
    """Raise InvalidOption for an option that only a monitor can have."""
    if options.session is not None:
        raise InvalidOption(
            f"session={options.session!r}: a detail has no session of its own; give the monitor one"
        )
    if options.run_at is not None:
        raise InvalidOption(
            f"run_at={options.run_at!r}: a monitor decides when its details start; "
            ".using(run_at=None) leaves it out"
        )
    if options.unique is not None and options.unique.mode != "while_executing":
        raise InvalidOption(
            f"unique={options.unique.mode!r}: a monitor keeps each of its details, so that only "
            "'while_executing' is possible; .using(unique=None) leaves it out"
        )
    _check_tenant(options, tenant)


def check_callback(options: Options, tenant: str) -> None:
    """Raise InvalidOption for an option that a callback cannot have: it waits for the last
    detail."""
    for name in ("unique", "run_at", "limit_user"):
        if (value := getattr(options, name)) is not None:
            raise InvalidOption(
                f"{name}={value!r}: the callback of a monitor runs once, when its last detail has "
                f"ended; .using({name}=None) leaves it out"
            )
    if isinstance(options.expires_at, timedelta):
        raise InvalidOption(
            f"expires_at={options.expires_at!r} would count from the start of the monitor: give "
            "the callback a datetime, or .using(expires_at=None)"
        )
    _check_tenant(options, tenant)


def _check_tenant(options: Options, tenant: str) -> None:
    if options.tenant is not None and options.tenant != tenant:
        raise InvalidOption(
            f"tenant={options.tenant!r}: the details of a monitor belong to its tenant, "
            f"{tenant!r}; leave tenant out, or start a monitor for each tenant"
        )


def _short(value: object) -> str:
    text = f"<{value.model.__name__} queryset>" if isinstance(value, QuerySet) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
