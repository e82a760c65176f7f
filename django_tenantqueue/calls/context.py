"""Values that travel from the enqueue into the run: language, time zone, values of a project.

A carrier is a class with `key`, `capture()` (called at enqueue; None carries nothing) and
`apply(value)`, a context manager around the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

from django.conf import settings as django_settings
from django.core.signals import setting_changed
from django.utils import timezone, translation
from django.utils.module_loading import import_string

from ..conf import get_settings
from ..exceptions import InvalidArgument, InvalidOption, NotAllowed
from . import tracing


class Carrier(Protocol):
    """The interface of an entry of TENANTQUEUE["CONTEXT"]. Values must be JSON."""

    key: str

    def capture(self) -> Any:
        """Return the value to carry; None: nothing."""

    def apply(self, value: Any) -> AbstractContextManager[Any]:
        """Return a context manager that sets the value for a run."""


class Language:
    """Carries the active translation when it is not the project's default."""

    key = "language"

    def capture(self) -> str | None:
        """Return the active language."""
        active = translation.get_language()
        return None if active in (None, django_settings.LANGUAGE_CODE) else active

    def apply(self, value: str) -> AbstractContextManager[Any]:
        """Activate the language."""
        return translation.override(value)


class TimeZone:
    """Carries the current time zone when it is not the project's default."""

    key = "time_zone"

    def capture(self) -> str | None:
        """Return the name of the current time zone; its offset (+HHMM) when it has no name."""
        active = timezone.get_current_timezone()
        if active is timezone.get_default_timezone():
            return None  # by far the usual case; finding the name takes longer
        # of zoneinfo, of pytz
        name = getattr(active, "key", None) or getattr(active, "zone", None)
        if active == UTC:
            name = "UTC"
        elif not isinstance(name, str):
            name = f"{datetime.now(active):%z}"
        return None if name == django_settings.TIME_ZONE else name

    def apply(self, value: str) -> AbstractContextManager[Any]:
        """Activate the time zone."""
        if value.startswith(("+", "-")):
            offset = datetime.strptime(value, "%z").utcoffset()
            assert offset is not None, "%z reads nothing else"
            return timezone.override(timezone.get_fixed_timezone(offset))
        return timezone.override(value)


@cache
def _carriers() -> tuple[Carrier, ...]:
    found = []
    for path in get_settings().context:
        try:
            found.append(import_string(path)())
        except (ImportError, TypeError) as error:
            raise InvalidOption(
                f"TENANTQUEUE['CONTEXT'] {path!r}: {error}. Give the path of a class that is made "
                "without arguments"
            ) from error
    return tuple(found)


@cache
def _wrappers() -> tuple[Callable[[Any], AbstractContextManager[Any]], ...]:
    found = []
    for path in get_settings().wrappers:
        try:
            found.append(import_string(path))
        except ImportError as error:
            raise InvalidOption(
                f"TENANTQUEUE['WRAPPERS'] {path!r}: {error}. Give the path of a context manager "
                "that takes the job"
            ) from error
    return tuple(found)


def is_async_capable(wrapper: Callable[[Any], AbstractContextManager[Any]]) -> bool:
    """Return whether a wrapper supports coroutines."""
    return getattr(wrapper, "async_capable", False) is True


@cache
def blocking_wrappers() -> tuple[str, ...]:
    """Return the paths of the wrappers that do not support coroutines."""
    named = zip(get_settings().wrappers, _wrappers(), strict=True)
    return tuple(path for path, wrapper in named if not is_async_capable(wrapper))


def check_coroutine(name: str) -> None:
    """Raise NotAllowed for a coroutine task if a wrapper does not support coroutines.

    The package's own coroutines run without these wrappers: they use no tables of the project.
    """
    if blocking_wrappers() and not name.startswith("django_tenantqueue."):
        raise NotAllowed(
            f"{name!r} is a coroutine, and TENANTQUEUE['WRAPPERS'] names {blocking_wrappers()[0]!r}"
            ", which does not support coroutines: they share one thread for the ORM. Declare the "
            "task with def and use async_to_sync() in it, or set async_capable = True on the "
            "wrapper if it changes neither its thread nor a connection"
        )


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "TENANTQUEUE":
        _carriers.cache_clear()
        _wrappers.cache_clear()
        blocking_wrappers.cache_clear()


setting_changed.connect(_forget)


def capture_context() -> str | None:
    """Return the context of a job from the current thread as JSON text; None: nothing."""
    values = {c.key: value for c in _carriers() if (value := c.capture()) is not None}
    if tracing.active is not None and (trace := tracing.active.capture()):
        values[tracing.TRACE] = trace
    if not values:
        return None
    try:
        return json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"a value of TENANTQUEUE['CONTEXT'] is not JSON: {error}. Let capture() return str, "
            f"numbers, lists or dicts (the keys of the values: {', '.join(values)})"
        ) from error


def with_trace(context: str) -> str | None:
    """Return a context ("": an empty one) with the trace of the current thread for its own."""
    values = json.loads(context) if context else {}
    values.pop(tracing.TRACE, None)
    if tracing.active is not None and (trace := tracing.active.capture()):
        values[tracing.TRACE] = trace
    return json.dumps(values) if values else None


def has_surroundings(context: str | None) -> bool:
    """Whether `surroundings` would do anything for a job with this context."""
    return context is not None or bool(_wrappers())


@contextmanager
def surroundings(context: str | None, running: Any) -> Iterator[None]:
    """Enter the carriers with their captured values, then the project's wrappers.

    Each wrapper is called with the running job and must return a context manager. Around a
    coroutine only wrappers that support it are entered: see check_coroutine().
    """
    with ExitStack() as stack:
        values = json.loads(context) if context is not None else {}
        for carrier in _carriers():
            if carrier.key in values:
                stack.enter_context(carrier.apply(values[carrier.key]))
        for wrapper in _wrappers():
            if running._claimed.is_async and not is_async_capable(wrapper):
                continue
            stack.enter_context(wrapper(running))
        yield
