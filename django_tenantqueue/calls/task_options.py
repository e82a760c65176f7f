"""Options of `@task` alone, checked where the task is made. Each function raises InvalidOption."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ..exceptions import InvalidOption
from .option_types import Backoff, RetryWhen
from .options import APPS, NAMES, OF_TASKS, check_whole, needs_app, of_apps, unknown_options
from .task_hooks import ELSEWHERE, HOOKS, TaskHooks


def read_retry_when(
    name: str, retry_when: RetryWhen | type[BaseException] | None
) -> RetryWhen | None:
    """Return the classes or the callable of retried errors; None: every error."""
    if isinstance(retry_when, type):
        return (retry_when,)
    if retry_when is None or callable(retry_when) or isinstance(retry_when, tuple):
        return retry_when
    raise InvalidOption(
        f"{name}: retry_when={retry_when!r} must be an exception class, a tuple of them, or a "
        "callable that takes the exception"
    )


def read_backoff(name: str, backoff: Backoff | None) -> Backoff | None:
    """Return seconds, a timedelta or a callable (attempt, error) -> one of them."""
    if (
        backoff is None
        or callable(backoff)
        or (isinstance(backoff, int | float | timedelta) and not isinstance(backoff, bool))
    ):
        return backoff
    raise InvalidOption(
        f"{name}: backoff={backoff!r} must be seconds, a timedelta or a callable (attempt, error)"
    )


def read_hooks(name: str, hooks: Any) -> TaskHooks | None:
    """Return `hooks` when a method of it is called."""
    if hooks is None:
        return None
    if isinstance(hooks, type) and issubclass(hooks, TaskHooks):
        raise InvalidOption(
            f"{name}: hooks={hooks!r} is a class: give an object, {hooks.__name__}()"
        )
    if not isinstance(hooks, TaskHooks):
        raise InvalidOption(
            f"{name}: hooks={hooks!r} must be an object whose class inherits from "
            "django_tenantqueue.TaskHooks"
        )
    for other, own in ELSEWHERE.items():
        if callable(getattr(type(hooks), other, None)):
            raise InvalidOption(
                f"{name}: hooks={hooks!r} has a method {other}(), which is not called: name it "
                f"{own}"
            )
    if all(getattr(type(hooks), hook) is getattr(TaskHooks, hook) for hook in HOOKS):
        raise InvalidOption(
            f"{name}: hooks={hooks!r} overrides none of the methods {', '.join(HOOKS)}: override "
            "some, or leave hooks out"
        )
    return hooks


def readers_of(names: Sequence[str]) -> dict[str, Callable[[Any, Any], Any]]:
    """Return the functions that read options of apps, see Feature.task_options().

    Raises InvalidOption for an unknown name, and Unsupported for one whose app is not installed.
    """
    if not names:
        return {}
    readers = of_apps()
    unknown = [name for name in names if name not in readers and name not in APPS]
    if unknown:
        raise unknown_options(unknown, (*NAMES, *OF_TASKS, *readers))
    for name in names:
        if name not in readers:
            raise needs_app(name)
    return readers


def read_rate(max_per_second: Any, burst: Any) -> tuple[float, int | None]:
    """Return the rate of a task and its burst; raise InvalidOption."""
    is_number = isinstance(max_per_second, int | float) and not isinstance(max_per_second, bool)
    if not is_number or not 0.0001 <= max_per_second <= 1_000_000:
        raise InvalidOption(
            f"max_per_second={max_per_second!r}: it must be a number from 0.0001 to 1,000,000"
        )
    burst = None if burst is None else check_whole("burst", burst, 1, 1_000_000)
    return float(max_per_second), burst


def positional_range(signature: inspect.Signature) -> range:
    """Return how many arguments a function takes by position alone; empty: it needs others, too."""
    least = most = 0
    for parameter in signature.parameters.values():
        required = parameter.default is parameter.empty
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            most += 1
            least += required
        elif parameter.kind is parameter.KEYWORD_ONLY and required:
            return range(0)
    return range(least, most + 1)
