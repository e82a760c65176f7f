"""Async twins of functions that use the database."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

P = ParamSpec("P")
R = TypeVar("R")


def twin(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the async twin of a function or method, which calls it in a thread.

    Its name has an `a` in front, its signature is the same.
    """

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return await sync_to_async(function)(*args, **kwargs)

    name = function.__name__
    call.__name__ = f"a{name}"
    call.__qualname__ = f"{function.__qualname__.removesuffix(name)}a{name}"
    call.__doc__ = f"See {name}()."
    return call
