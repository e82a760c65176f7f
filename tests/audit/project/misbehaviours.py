"""TABLE: users' code that misbehaves, and how each of its jobs must end.

Each is what a project's code can do to its own thread, connection, event loop or process. What
nothing can undo for others, like a change of `os.environ`, is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import decimal
import multiprocessing
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone, translation
from psycopg.rows import dict_row

from django_tenantqueue import Task, TaskHooks, current_job, task, use_tenant


@dataclass(frozen=True)
class Misbehaviour:
    """One way: the task, a pattern of `<state> <class>: <message>`, and what it does to others."""

    task: Task[[], Any]
    ends: str
    jobs: int
    kills: bool
    """It ends its process at once: what runs beside it there has to start again."""
    replaced: bool
    """Another process takes the place of the one that has run it."""
    connection: bool
    """It does something to a connection: `CONN_MAX_AGE` may make a difference."""


TABLE: dict[str, Misbehaviour] = {}
SUCCESS = r"success$"
LEFT_OPEN = r"error django_tenantqueue\.exceptions\.\w+: .*(transaction|block)"
CRASH = r"error django_tenantqueue\.exceptions\.WorkerDied: its worker process ended with "
kept: list[Any] = []
"""What tasks leave behind stays alive, as in a module of users' code."""


def must_end(
    pattern: str,
    *,
    jobs: int = 8,
    kills: bool = False,
    replaced: bool = False,
    connection: bool = False,
    **options: Any,
) -> Callable[[Callable[[], Any]], Task[[], Any]]:
    """Make a function a task and a row of the table."""

    def note(func: Callable[[], Any]) -> Task[[], Any]:
        made: Task[[], Any] = task(**options)(func)
        TABLE[func.__name__] = Misbehaviour(
            made, pattern, jobs, kills, replaced or kills, connection
        )
        return made

    return note


def on_connection(pattern: str, **options: Any) -> Callable[[Callable[[], Any]], Task[[], Any]]:
    """Make a function a task that does something to a connection, and a row of the table."""
    return must_end(pattern, connection=True, **options)


def sql(statement: str) -> None:
    """Run a statement on the thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute(statement)


def write() -> None:
    """Write a row, as tasks do."""
    apps.get_model("audit", "Effect").objects.create(job_id=current_job().id)


# transactions


@on_connection(LEFT_OPEN)
def enters_atomic_and_returns() -> None:
    transaction.atomic().__enter__()
    write()


@on_connection(LEFT_OPEN)
def enters_two_blocks_and_returns() -> None:
    transaction.atomic().__enter__()
    transaction.atomic().__enter__()
    write()


@on_connection(LEFT_OPEN)
def leaves_a_failed_block() -> None:
    transaction.atomic().__enter__()
    with contextlib.suppress(DatabaseError):
        sql("SELECT 1 / 0")


@on_connection(r"error ValueError: a mistake")
def raises_inside_a_block_left_open() -> None:
    transaction.atomic().__enter__()
    write()
    raise ValueError("a mistake")


@on_connection(LEFT_OPEN, atomic=True)
def leaves_an_inner_block_of_an_atomic_task() -> None:
    transaction.atomic().__enter__()
    write()


@on_connection(LEFT_OPEN)
def begins_by_hand() -> None:
    sql("BEGIN")
    write()


@on_connection(LEFT_OPEN)
def begins_by_hand_and_fails() -> None:
    sql("BEGIN")
    with contextlib.suppress(DatabaseError):
        sql("SELECT 1 / 0")


@on_connection(LEFT_OPEN)
def leaves_a_savepoint() -> None:
    sql("BEGIN")
    sql("SAVEPOINT mine")
    write()


@on_connection(LEFT_OPEN)
def turns_autocommit_off() -> None:
    transaction.set_autocommit(False)
    write()


@on_connection(r"error RuntimeError: after the commit")
def raises_after_the_commit() -> None:
    def hook() -> None:
        raise RuntimeError("after the commit")

    with transaction.atomic():
        transaction.on_commit(hook)
        transaction.on_commit(lambda: kept.append("never"))


@on_connection(r"error .*TimeLimitExceeded", timeout=0.2)
def loops_over_small_transactions() -> None:
    while True:
        with transaction.atomic():
            pass


@on_connection(r"error .*TimeLimitExceeded", timeout=0.2)
def sleeps_in_the_server() -> None:
    with transaction.atomic():
        while True:
            write()
            sql("SELECT pg_sleep(0.01)")


# the connection


@on_connection(SUCCESS)
def closes_the_connection() -> None:
    write()
    connection.close()


@on_connection(r"error django\.db\.")
def closes_the_connection_inside_a_block() -> None:
    with transaction.atomic():
        connection.close()
        write()


@on_connection(SUCCESS)
def closes_the_raw_connection() -> None:
    write()
    connection.connection.close()


@on_connection(SUCCESS)
def has_its_session_terminated() -> None:
    with contextlib.suppress(DatabaseError):
        sql("SELECT pg_terminate_backend(pg_backend_pid())")


@on_connection(SUCCESS)
def drops_the_connection() -> None:
    write()
    kept.append(connections["default"])
    del connections["default"]


@on_connection(SUCCESS)
def replaces_close() -> None:
    write()
    connection.close = lambda: None


@on_connection(SUCCESS)
def leaves_an_execute_wrapper() -> None:
    def refuse(*args: Any) -> None:
        raise PermissionError("no statements")

    write()
    connection.execute_wrapper(refuse).__enter__()


@on_connection(SUCCESS)
def changes_the_row_factory() -> None:
    write()
    connection.connection.row_factory = dict_row


# the session in the server


@on_connection(SUCCESS)
def sets_a_role() -> None:
    sql("SET ROLE pg_monitor")


@on_connection(SUCCESS)
def sets_the_search_path() -> None:
    sql("SET search_path = pg_catalog")


@on_connection(SUCCESS)
def sets_read_only() -> None:
    sql("SET default_transaction_read_only = on")


@on_connection(SUCCESS)
def sets_a_statement_timeout() -> None:
    sql("SET statement_timeout = 1")


@on_connection(SUCCESS)
def sets_the_servers_time_zone() -> None:
    sql("SET TimeZone = 'Asia/Tokyo'")


@on_connection(SUCCESS)
def shadows_a_table() -> None:
    sql("CREATE TEMPORARY TABLE audit_effect (LIKE audit_effect INCLUDING ALL)")


@on_connection(SUCCESS)
def keeps_a_session_lock() -> None:
    sql("SELECT pg_advisory_lock_shared(4711)")


@on_connection(SUCCESS)
def listens() -> None:
    sql("LISTEN audit")
    sql("NOTIFY audit")


@on_connection(SUCCESS)
def leaves_a_prepared_statement() -> None:
    sql("PREPARE mine AS SELECT 1")


@on_connection(SUCCESS)
def leaves_a_server_side_cursor() -> None:
    rows = apps.get_model("audit", "Effect").objects.all().iterator(chunk_size=1)
    next(rows, None)
    kept.append(rows)


@on_connection(SUCCESS)
def leaves_a_cursor() -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT generate_series(1, 1000)")
    kept.append(cursor)


# what is current in the thread


@must_end(SUCCESS)
def activates_a_language() -> None:
    translation.activate("de")


@must_end(SUCCESS)
def activates_a_time_zone() -> None:
    timezone.activate("Asia/Tokyo")


@must_end(SUCCESS)
def enters_another_tenant() -> None:
    use_tenant("guilty too").__enter__()


@must_end(SUCCESS)
def changes_the_decimal_precision() -> None:
    decimal.getcontext().prec = 3


@must_end(SUCCESS)
def blocks_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])


@must_end(SUCCESS)
def changes_the_directory() -> None:
    os.chdir("/")
    socket.setdefaulttimeout(0.001)


# errors


class Unprintable(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnprintableBase(BaseException):
    """Its text cannot be had, nor is it an Exception."""

    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


class BytesInSyntax(SyntaxError):
    """What the traceback module cannot format."""

    def __init__(self) -> None:
        super().__init__("wrong", ("a.py", 1, 1, b"bytes"))
        self.text = b"bytes"  # type: ignore[assignment]


class NotesThatRaise(Exception):
    """What the traceback module asks for raises."""

    @property
    def __notes__(self) -> list[str]:
        raise SystemExit("no notes")


@must_end(r"error .*Unprintable")
def raises_an_unprintable_error() -> None:
    raise Unprintable


@must_end(r"error .*UnprintableBase")
def raises_an_unprintable_base_error() -> None:
    raise UnprintableBase


@must_end(r"error .*UnprintableBase")
async def raises_an_unprintable_base_error_in_a_coroutine() -> None:
    raise UnprintableBase


@must_end(r"error .*BytesInSyntax")
def raises_a_syntax_error_with_bytes() -> None:
    raise BytesInSyntax


@must_end(r"error .*NotesThatRaise")
def raises_an_error_with_bad_notes() -> None:
    raise NotesThatRaise("noted")


@must_end(r"error RuntimeError: cyclic")
def raises_a_cyclic_error() -> None:
    first, second = RuntimeError("cyclic"), RuntimeError("second")
    first.__context__, second.__context__ = second, first
    raise first


@must_end(r"error ValueError: .*ud800")
def raises_an_error_with_a_surrogate() -> None:
    raise ValueError("\ud800\x00")


@must_end(r"error SystemExit: 0")
def exits() -> None:
    sys.exit(0)


@must_end(r"error SystemExit: 3")
async def exits_in_a_coroutine() -> None:
    sys.exit(3)


@must_end(r"error KeyboardInterrupt")
def interrupts() -> None:
    raise KeyboardInterrupt


@must_end(r"error KeyboardInterrupt")
async def interrupts_in_a_coroutine() -> None:
    raise KeyboardInterrupt


@must_end(r"error GeneratorExit")
def raises_generator_exit() -> None:
    raise GeneratorExit


@must_end(r"error .*CancelledError")
def raises_cancelled_error() -> None:
    raise asyncio.CancelledError


@must_end(r"error RecursionError")
def recurses() -> None:
    recurses.func()


@must_end(r"error MemoryError")
def runs_out_of_memory() -> None:
    raise MemoryError


# what is kept with a job


class BadText:
    """A message without text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class BadItems(dict):  # type: ignore[type-arg]
    """A result that ends who reads it."""

    def items(self) -> Any:
        raise SystemExit("no items")


class BadHooks(TaskHooks):
    """Hooks that raise what is no Exception."""

    def success(self, job: Any, result: Any) -> None:
        raise SystemExit("no success")

    def after(self, job: Any) -> None:
        raise KeyboardInterrupt


@must_end(r"error RuntimeError: no text")
def reports_progress_without_text() -> None:
    current_job().progress(1, 2, BadText())  # type: ignore[arg-type]


@must_end(SUCCESS)
def reports_a_surrogate() -> None:
    current_job().progress(1, 2, "\ud800\x00")


@must_end(r"error .*InvalidResult")
def keeps_statistics_that_are_cyclic() -> None:
    current_job().stats["self"] = current_job().stats


@must_end(r"error .*InvalidResult")
def returns_an_object() -> object:
    return object()


@must_end(r"error .*InvalidResult")
def returns_too_much() -> str:
    return "x" * 2_000_000


@must_end(r"error .*InvalidResult")
def returns_a_nul() -> str:
    return "\x00"


@must_end(r"error .*InvalidResult")
def returns_what_is_nested_deeply() -> list[Any]:
    result: list[Any] = []
    for _ in range(100_000):
        result = [result]
    return result


@must_end(r"error .*InvalidResult")
def returns_infinity() -> float:
    return float("inf")


@must_end(r"error SystemExit: no items")
def returns_what_raises() -> dict[str, int]:
    return BadItems(a=1)


@must_end(SUCCESS, hooks=BadHooks())
def has_hooks_that_raise() -> None:
    write()


# limits and coroutines


@must_end(SUCCESS, timeout=0.2, jobs=4)
def swallows_its_time_limit() -> None:
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


@must_end(SUCCESS, timeout=0.2, jobs=4)
async def swallows_its_cancellation() -> None:
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)


@must_end(SUCCESS, jobs=2)
async def blocks_the_loop() -> None:
    time.sleep(0.3)


@must_end(SUCCESS)
async def leaves_tasks_running() -> None:
    async def fail_later() -> None:
        await asyncio.sleep(0.02)
        raise RuntimeError("nobody looks")

    kept.append(asyncio.create_task(fail_later()))
    kept.append(asyncio.create_task(asyncio.sleep(60)))


@must_end(SUCCESS)
async def stops_the_event_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)


@on_connection(SUCCESS)
async def has_the_event_loop_exit() -> None:
    asyncio.get_running_loop().call_soon(sys.exit)
    await asyncio.sleep(0.01)


@on_connection(r"error|success")
async def leaves_a_transaction_of_the_orms_thread() -> None:
    await sync_to_async(sql)("BEGIN")


@on_connection(r"error|success")
async def enters_atomic_in_the_orms_thread() -> None:
    await sync_to_async(transaction.atomic().__enter__)()


@on_connection(SUCCESS)
async def sets_a_role_in_the_orms_thread() -> None:
    await sync_to_async(sql)("SET ROLE pg_monitor")


# the process


@must_end(SUCCESS, jobs=3)
def forks_and_returns_twice() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        os.fork()


@must_end(SUCCESS, jobs=3)
async def forks_in_a_coroutine_and_returns_twice() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        os.fork()


@must_end(r"error SystemExit", jobs=3)
def forks_and_exits() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        os.fork()
    sys.exit(1)


@must_end(SUCCESS, jobs=3)
def terminates_a_fork() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        process.start()
    process.terminate()
    process.join(5)
    assert process.exitcode == -signal.SIGTERM


@must_end(SUCCESS, jobs=2, replaced=True)
def tells_its_process_to_stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@must_end(CRASH, jobs=2, kills=True)
def ends_its_process() -> None:
    os._exit(0)


@must_end(CRASH, jobs=2, kills=True)
def kills_its_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
