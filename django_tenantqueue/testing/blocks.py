"""`with` blocks of tests, which coroutines enter with `async with`; travel() is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    contextmanager,
)
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar
from unittest import mock

from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone
from psycopg.pq import TransactionStatus

from ..calls.options import check_moment
from ..databases import databases_of_test

P = ParamSpec("P")
T = TypeVar("T")

_READ = """
    SELECT
        clock_timestamp(), current_setting('search_path'),
        coalesce(nullif(current_setting('tenantqueue.travelled', true), ''), '0')::interval
"""
_SET = """
    SELECT
        set_config('search_path', %s, false),
        set_config('tenantqueue.travelled', %s::interval::text, false)
"""
_CLOCKS = {
    "clock_timestamp": "VOLATILE",
    "statement_timestamp": "STABLE",
    "transaction_timestamp": "STABLE",
    "now": "STABLE",
}
_SCHEMA = "tenantqueue_travel"
"""Has the clocks. It comes before pg_catalog in the search path of a connection that travels, so
that statements find them under the names of the server's own."""
_MAKE = f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA};" + "".join(
    f"""
    CREATE OR REPLACE FUNCTION {_SCHEMA}.{name}() RETURNS timestamptz LANGUAGE sql {kind} AS $$
        SELECT pg_catalog.{name}() + current_setting('tenantqueue.travelled')::interval
    $$;
    """
    for name, kind in _CLOCKS.items()
)


class Block(AbstractContextManager[T], AbstractAsyncContextManager[T], Generic[T]):
    """A block for `with`, and for `async with`, which uses the database in the thread for it."""

    def __init__(self, inner: AbstractContextManager[T]) -> None:
        self._inner = inner

    def __enter__(self) -> T:
        return self._inner.__enter__()

    def __exit__(self, *raised: Any) -> bool | None:
        return self._inner.__exit__(*raised)

    async def __aenter__(self) -> T:
        return await sync_to_async(self.__enter__)()

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await sync_to_async(self.__exit__)(*raised)


def block(function: Callable[P, Iterator[T]]) -> Callable[P, Block[T]]:
    """Make a generator function one that returns a Block."""
    make = contextmanager(function)

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Block[T]:
        return Block(make(*args, **kwargs))

    return wrapped


@block
def travel(moment: datetime | timedelta | float, /) -> Iterator[None]:
    """Set the clock to `moment` in the block: an aware datetime, or a time from now. It runs on.

    The clock is that of the database on this thread's connection, and `timezone.now()`. Python's
    own clocks stay. Blocks may be nested. Raises InvalidOption.
    """
    step = check_moment("moment", moment)
    clock = timezone.now
    with ExitStack() as stack:
        further, *_ = [stack.enter_context(_travel(u, step)) for u in databases_of_test()]

        def travelled_now() -> datetime:
            return clock() + further

        with mock.patch.object(timezone, "now", travelled_now):
            yield


@contextmanager
def _travel(using: str, step: datetime | timedelta) -> Iterator[timedelta]:
    """Set the clock of one database; yield how much further it is."""
    wrapper = connections[using]
    with wrapper.cursor() as cursor:
        cursor.execute(_READ)
        now, path, before = cursor.fetchone()
        travelled = before + (step if isinstance(step, timedelta) else step - now)
        cursor.execute(_MAKE)
        cursor.execute(_SET, [f"{_SCHEMA}, pg_catalog, {path}", travelled])
    try:
        yield travelled - before
    finally:
        if not _is_broken(using):  # else its rollback brings back what was set before
            with wrapper.cursor() as cursor:
                cursor.execute(_SET, [path, before])
                if not before:
                    cursor.execute(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE")


def _is_broken(using: str) -> bool:
    wrapper = connections[using]
    if wrapper.needs_rollback:
        return True
    raw = wrapper.connection
    return raw is not None and raw.pgconn.transaction_status == TransactionStatus.INERROR
