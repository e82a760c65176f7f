"""Tasks with every option, for the tests of what options do."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from django_tenantqueue import Permanent, Retry, TaskHooks, current_job, get_tenant, task
from tests.testapp.tasks import noop

calls: list[Any] = []
"""What the tasks here were called with; a test that looks empties it first."""


class Noting(TaskHooks):
    """Hooks that note their calls."""

    def enqueue(self, job: Any) -> None:
        calls.append(("enqueue", job.pk))

    def before(self, job: Any) -> None:
        calls.append(("before", job.id))

    def success(self, job: Any, result: Any) -> None:
        calls.append(("success", job.id, result))

    def attempt_failed(self, job: Any, error: BaseException) -> None:
        calls.append(("attempt_failed", job.id, type(error)))

    def failure(self, job: Any) -> None:
        calls.append(("failure", job.id))

    def after(self, job: Any) -> None:
        calls.append(("after", job.id))


class Broken(TaskHooks):
    """Hooks that fail after the run."""

    def success(self, job: Any, result: Any) -> None:
        raise ZeroDivisionError("hook")

    def after(self, job: Any) -> None:
        raise ZeroDivisionError("hook")


@task(hooks=Noting(), max_attempts=2, backoff=0.0)
def hooked(error: str = "") -> str:
    """Succeed, or raise."""
    calls.append("run")
    if error == "permanent":
        raise Permanent(error)
    if error:
        raise ValueError(error)
    return "done"


@task(hooks=Noting())
async def hooked_async() -> str:
    """Succeed."""
    calls.append("run")
    return "done"


@task(hooks=Broken())
def with_broken_hooks() -> str:
    """Succeed, while the hooks fail."""
    return "done"


@task(max_attempts=5, retry_when=(ValueError, KeyError))
def retried_when_listed(kind: str) -> None:
    """Raise an error of that kind."""
    raise {"ValueError": ValueError, "TypeError": TypeError}[kind]("no")


@task(max_attempts=5, retry_when=lambda error: "again" in str(error))
def retried_when_asked(message: str) -> None:
    """Raise."""
    raise ValueError(message)


@task(max_attempts=5, retry_when=lambda error: 1 / 0)
def retried_by_broken_rule() -> None:
    """Raise."""
    raise ValueError("the task's own")


@task(max_attempts=5, backoff=lambda attempt, error: 100.0 * attempt + len(str(error)))
def backed_off_by_rule() -> None:
    """Raise."""
    raise ValueError("four")


@task(max_attempts=30, backoff=10)
def backed_off_by_number() -> None:
    """Raise."""
    raise ValueError("no")


@task(max_attempts=20)
def fails() -> None:
    """Raise."""
    raise ValueError("no")


@task(max_attempts=3)
def asks_to_be_retried(after: float | None) -> None:
    """Raise Retry."""
    raise Retry("later", after=None if after is None else timedelta(seconds=after))


@task
def returns(what: str) -> Any:
    """Return something that cannot be stored, or hardly."""
    return {
        "NUL": "a\x00b",
        "NUL in a key": {"\x00": 1},
        "NaN": float("nan"),
        "lone surrogate": ["\ud800"],
        "object": object(),
        "bytes": b"raw",
        "escaped": "\\u0000",
        "large": "x" * 2_000_000,
    }[what]


@task
def says(what: str) -> None:
    """Put something that cannot be stored into the statistics."""
    current_job().stats["value"] = {
        "NUL": "\x00",
        "surrogate": "\ud800",
        "object": object(),
        "large": "x" * 2_000_000,
    }[what]


@task(max_attempts=1)
def raises(message: str) -> None:
    """Raise an error with such a message."""
    raise ValueError(message)


class Unspeakable(Exception):
    """An error that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@task(max_attempts=1)
def raises_unspeakable() -> None:
    """Raise it."""
    raise Unspeakable


@task(max_attempts=1)
def exits() -> None:
    """Leave the interpreter."""
    raise SystemExit(3)


@task
def enqueues(count: int) -> None:
    """Enqueue jobs for the current tenant."""
    for _ in range(count):
        noop.delay()


@task
def enqueues_itself() -> None:
    """Go on for ever."""
    enqueues_itself.delay()


@task
def breaks_the_transaction() -> str:
    """Send a statement that the database refuses, and go on."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
    except Exception:  # noqa: BLE001 - a task as users write them
        calls.append("refused")
    return "done"


@task(atomic=True)
def writes_and_returns(value: Any) -> Any:
    """Write an effect and return something."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO testapp_effect (job_id, note) VALUES (%s, 'x')", [current_job().id]
        )
    return returns(value) if value in ("NUL", "NaN") else value


def listed_function(first: int, second: int = 1) -> list[int]:
    """Run by name, if it is listed."""
    return [first, second]


def _hidden_function() -> None:
    """Never run by name."""


class Tools:
    """A class of a project that is no model."""

    @classmethod
    def make(cls, value: int) -> int:
        """Return the value."""
        return value

    @staticmethod
    def fixed() -> str:
        """Return a text."""
        return "fixed"

    def of_instances(self) -> None:
        """Need an instance."""

    attribute = 3


tools = Tools()


@contextmanager
def noting_wrapper(job: Any) -> Any:
    """Note when it is entered and left."""
    calls.append(("enter", job.id, get_tenant()))
    try:
        yield
    finally:
        calls.append(("leave", job.id))


@contextmanager
def capable_wrapper(job: Any) -> Any:
    """Note the same, and be put around coroutines, too."""
    with noting_wrapper(job):
        yield


capable_wrapper.async_capable = True  # type: ignore[attr-defined]


@contextmanager
def in_schema(job: Any) -> Any:
    """Set a schema on the connection of this thread, as the wrapper for django-tenants does."""
    calls.append(("schema of", threading.get_ident()))
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('search_path', %s, false)", [f"{job.tenant},public"])
        yield
        cursor.execute("SET search_path TO DEFAULT")


@task
def now_a_coroutine() -> Any:
    """Return a coroutine, as a task does that was no coroutine at the enqueue."""
    return _thread_of_the_orm()


async def _thread_of_the_orm() -> int:
    return await sync_to_async(threading.get_ident)()


class Colour:
    """Carries a value that the test sets."""

    key = "colour"
    value: Any = None
    applied: Any = None

    def capture(self) -> Any:
        return type(self).value

    @contextmanager
    def apply(self, value: Any) -> Any:
        type(self).applied = value
        yield
        type(self).applied = None


@task
def colour() -> Any:
    """Return what is carried."""
    return Colour.applied


def tenant_of_request() -> Any:
    """Be a TENANT_RESOLVER."""
    return resolved["tenant"]


resolved: dict[str, Any] = {"tenant": "from-resolver"}


@task(secret=("password", "card"))
def signs_in(user: str, password: str, *, card: str = "", remember: bool = False) -> dict[str, str]:
    """Take two secret arguments."""
    return {"user": user}


@task(searchable=("invoice", "extra"))
def bills(invoice: Any, note: str = "", **extra: Any) -> None:
    """Take arguments by which its jobs are found."""


@task(secret=True)
def keeps_all_secret(first: Any, second: Any = None) -> Any:
    """Return the first argument."""
    return first


@task(secret=("rest", "options"))
def takes_any(first: str, *rest: str, **options: str) -> None:
    """Take secret arguments without names of their own."""
