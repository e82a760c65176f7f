"""Workers and threads for tests with several connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any

import psycopg
import pytest
from django.db import connections

from django_tenantqueue.operations.claim import Filters
from django_tenantqueue.queries import survey as queries
from django_tenantqueue.worker.connection import connect
from tests.concurrency.sleepers import Sleeper
from tests.factories import Clock, FakeWorker

SECONDS = 20.0
"""Longest wait for another thread; a test that needs it has found something that hangs."""


@pytest.fixture(autouse=True)
def _transactional_db(transactional_db: None) -> None:
    """Commit in earnest: what a test does is seen by its other connections."""


@pytest.fixture(params=["reads all", "surveys"])
def manner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let workers read all ids; or survey, as when the server cannot clean up."""
    if request.param == "surveys":
        monkeypatch.setattr(queries.Survey, "dead_entries", 1_000_000)
        monkeypatch.setattr(queries, "TAKEN_MARGIN_SECONDS", 0.0)
        monkeypatch.setattr(FakeWorker, "surveys", True)
    return str(request.param)


@pytest.fixture
def worker_factory(transactional_db: None) -> Iterator[Callable[..., FakeWorker]]:
    """Return a function that makes workers; their connections are closed at the end."""
    made: list[FakeWorker] = []

    def make(filters: Filters | None = None, *, clock: Clock | None = None) -> FakeWorker:
        made.append(FakeWorker(filters, clock=clock))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.fixture
def snapshot(open_connection) -> psycopg.Connection:
    """Keep a snapshot for as long as the test lasts, or until it rolls back."""
    holder = open_connection()
    holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    holder.execute("SELECT count(*) FROM tenantqueue_tenantqueue")
    return holder


@pytest.fixture
def worker(worker_factory: Callable[..., FakeWorker]) -> FakeWorker:
    return worker_factory()


@pytest.fixture
def open_connection(transactional_db: None) -> Iterator[Callable[[], psycopg.Connection[Any]]]:
    """Return a function that opens connections, autocommit, on which no lock is waited for."""
    made: list[psycopg.Connection[Any]] = []

    def make() -> psycopg.Connection[Any]:
        made.append(connect("default", "test"))
        return made[-1]

    yield make
    for opened in made:
        opened.close()


class Threads:
    """Runs functions in threads, each with a Django connection of its own that gets closed."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(32)

    def start(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        def call() -> Any:
            try:
                with connections["default"].cursor() as cursor:
                    cursor.execute("SET lock_timeout = '10s'")
                return function(*args)
            finally:
                connections.close_all()

        return self.pool.submit(call)

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.start(function, *args).result(SECONDS)

    def run_all(
        self, functions: Iterable[Callable[[], Any]], seconds: float, over: threading.Event
    ) -> None:
        """Call functions side by side and wait for all of them, or for the first that fails.

        `over` is set then, so that the others end, too. Raises what was raised first.
        """
        futures = [self.start(function) for function in functions]
        done, left = wait(futures, seconds, FIRST_EXCEPTION)
        over.set()
        for future in done:
            future.result()
        assert not left, f"{len(left)} threads have not ended within {seconds} s"


@pytest.fixture
def threads(transactional_db: None) -> Iterator[Threads]:
    started = Threads()
    yield started
    started.pool.shutdown()


@pytest.fixture
def reached() -> threading.Event:
    return threading.Event()


@pytest.fixture
def make_sleeper(open_connection: Callable[[], psycopg.Connection[Any]]) -> Callable[..., Sleeper]:
    """Return a maker of workers that have announced their sleep, and listen."""
    return lambda **options: Sleeper(open_connection(), **options)
