"""Requests that wait for jobs. One thread of the process reads the jobs of all of them.

A waiting request holds no database connection, and under ASGI no thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress

from asgiref.sync import SyncToAsync
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from ...conf import get_settings, main_database, settings_of
from ...models import Job
from ...models.waiting import FIRST_PAUSE, LONGEST_PAUSE
from ...status.callback_progress import show_details
from . import shown
from .access import Caller
from .exceptions import ApiError
from .models import ApiToken
from .settings import ApiSettings

ASGI_WAITS, WSGI_WAITS = 100, 2
"""Waiting requests of one token in a process, by default. Under WSGI each occupies one of the few
threads of the server."""


class Wait:
    """A waiting request. Its attributes are from the last read."""

    def __init__(self, request: HttpRequest, caller: Caller, job_id: int, *, each: bool) -> None:
        """`each`: wake the request at each read, not only when the job has ended."""
        self.token_id, self.job_id, self.each = caller.token.pk, job_id, each
        self.using = get_settings().database
        self.is_async = isinstance(request, ASGIRequest)
        self.began = time.monotonic()
        self.job: Job | None = None
        self.is_refused = self.is_over = False
        self.error: Exception | None = None
        self._wake: Callable[[], object] = lambda: None

    def update(self, job: Job | None, *, is_refused: bool, error: Exception | None = None) -> None:
        """Store what was read, in the thread of the watcher."""
        self.job, self.is_refused, self.error = job, is_refused, error
        self.is_over = job is None or job.final or is_refused
        if self.each or self.is_over:
            with suppress(RuntimeError):  # its event loop has ended
                self._wake()

    def change(self, seconds: float) -> None:
        """Sleep until an update, or for these seconds. Raises the error of the read."""
        event = threading.Event()
        self._wake = event.set
        event.wait(seconds)
        self._raise()

    async def achange(self, seconds: float) -> None:
        """See change()."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(event.set)
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)
        self._raise()

    def _raise(self) -> None:
        if self.error is not None:
            raise self.error


class Watcher:
    """Reads the jobs of all waits, in a thread that ends with the last of them."""

    def __init__(self) -> None:
        self.waits: set[Wait] = set()
        self._lock = threading.Lock()
        self._joined = threading.Event()
        self.is_looking = False

    def join(self, wait: Wait) -> None:
        """Add a wait. Raises ApiError, 429, when its token has too many."""
        own = settings_of(ApiSettings).waits_per_token
        most = own or (ASGI_WAITS if wait.is_async else WSGI_WAITS)
        with self._lock:
            if sum(other.token_id == wait.token_id for other in list(self.waits)) >= most:
                raise ApiError(
                    429,
                    f"{most} requests of the token already wait in this process, the maximum "
                    "(TENANTQUEUE['API']['WAITS_PER_TOKEN']).",
                    {"Retry-After": "5"},
                )
            self.waits.add(wait)
            if not self.is_looking:
                self.is_looking = True
                threading.Thread(target=self._run, name="tenantqueue-waits", daemon=True).start()
        self._joined.set()

    def leave(self, wait: Wait) -> None:
        """Remove a wait. Takes no lock: the garbage collector may call it at any time."""
        self.waits.discard(wait)

    def _run(self) -> None:
        try:
            while True:
                self._joined.clear()
                with self._lock:
                    waits = list(self.waits)
                    if not waits:
                        self.is_looking = False
                        return
                self._look(waits)
                time.sleep(FIRST_PAUSE)
                age = time.monotonic() - max(wait.began for wait in waits)
                self._joined.wait(min(LONGEST_PAUSE - FIRST_PAUSE, age / 3))
        finally:
            connections.close_all()

    def _look(self, waits: list[Wait]) -> None:
        of_database: defaultdict[str, list[Wait]] = defaultdict(list)
        for wait in waits:
            of_database[wait.using].append(wait)
        for using, own in of_database.items():
            self._look_in(using, own)

    def _look_in(self, using: str, waits: list[Wait]) -> None:
        try:
            jobs = _read_jobs(using, waits)
            valid = _valid_tokens(main_database(), {wait.token_id for wait in waits})
            for alias in {using, main_database()}:
                if getattr(connections[alias], "pool", None) is not None:
                    connections[alias].close()  # returns it; without a pool all waits share one
        except Exception as error:  # noqa: BLE001 - each request answers with it
            connections.close_all()
            for wait in waits:
                wait.update(None, is_refused=False, error=error)
            return
        for wait in waits:
            wait.update(jobs.get(wait.job_id), is_refused=wait.token_id not in valid)


def _read_jobs(using: str, waits: list[Wait]) -> dict[int, Job]:
    rows = Job.objects.using(using).select_related("queue").defer(*shown.HEAVY)
    jobs = rows.find_many(wait.job_id for wait in waits)
    followed = {wait.job_id for wait in waits if wait.each}
    show_details([job for pk, job in jobs.items() if pk in followed])
    return jobs


def _valid_tokens(using: str, ids: set[int]) -> set[int]:
    tokens = ApiToken.objects.using(using).filter(pk__in=ids, revoked_at__isnull=True)
    is_valid = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    return set(tokens.filter(is_valid).order_by().values_list("pk", flat=True))


watcher = Watcher()


def close_connections() -> None:
    """Close the connections of this thread before a wait; the next statement opens another.

    One inside a transaction is that of a test.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def end_thread() -> None:
    """End the thread that Django keeps for a request under ASGI; sync code later gets another.

    asgiref does the same after the request. A thread from outside stays.
    """
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is not None and getattr(context, "_executor", None) is None:
        executor = SyncToAsync.context_to_thread_executor.pop(context, None)
        if executor is not None:
            executor.shutdown(wait=False)
