"""Long poll and server-sent events, as servers of both kinds run them, with a job that ends."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import OperationalError, connections
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.contrib.api import follow, waits
from django_tenantqueue.contrib.api.control import make_token
from django_tenantqueue.contrib.api.tokens import revoke_tokens
from django_tenantqueue.contrib.api.waits import Wait, Watcher, watcher
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending
from tests.factories import make_job, make_queue
from tests.process.workers import wait_until
from tests.testapp.tasks import add

from .conftest import EVERY, ApiClient, api_settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_thread_looks() -> Iterator[None]:
    yield
    gc.collect()  # streams that a test has left
    wait_until(lambda: not watcher.is_looking)


@contextmanager
def ending(after: threading.Event) -> Iterator[None]:
    """Run all jobs in another thread once an event is set."""

    def end() -> None:
        after.wait(20)
        run_pending()
        connections.close_all()

    thread = threading.Thread(target=end)
    thread.start()
    try:
        yield
    finally:
        after.set()
        thread.join()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event that is set once a waiting request has seen its job unfinished."""
    event, tell = threading.Event(), Wait.update

    def told(wait: Wait, job: Job | None, **options: Any) -> None:
        tell(wait, job, **options)
        if job is not None and not job.final:
            event.set()

    monkeypatch.setattr(Wait, "update", told)
    return event


def events_of(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream: their names and data."""
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_wait_is_answered_when_the_job_ends(api: ApiClient, looked: threading.Event) -> None:
    job = add.using(tenant="acme").delay(1, 2)

    with ending(looked):
        told = api.get(f"/jobs/{job.pk}/wait?seconds=20").json()

    assert (told["state"], told["final"], told["result"]) == ("success", True, 3)


def test_wait_is_answered_when_its_time_is_over(api: ApiClient) -> None:
    job = make_job(make_queue("acme"))

    told = api.get(f"/jobs/{job.pk}/wait?seconds=0.1").json()

    assert (told["state"], told["final"]) == ("ready", False)


def test_wait_is_refused_once_its_token_is_revoked(looked: threading.Event) -> None:
    row, secret = make_token("short", tenant="acme", scopes=EVERY)
    job = add.using(tenant="acme").delay(1, 2)

    def revoke() -> None:
        looked.wait(20)
        revoke_tokens(row.pk)
        connections.close_all()

    thread = threading.Thread(target=revoke)
    thread.start()
    response = ApiClient(secret).get(f"/jobs/{job.pk}/wait?seconds=20")
    thread.join()

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("seconds", ["-1", "61", "nan", "inf", "x"])
def test_wait_of_an_impossible_time_is_refused(api: ApiClient, seconds: str) -> None:
    job = make_job(make_queue("acme"))

    assert api.get(f"/jobs/{job.pk}/wait?seconds={seconds}").status_code == 422


@pytest.mark.parametrize("is_async", [False, True], ids=["wsgi", "asgi"])
def test_events_tell_the_end(api: ApiClient, looked: threading.Event, is_async: bool) -> None:
    job = add.using(tenant="acme").delay(1, 2)
    secret = make_token("async", tenant="acme", scopes=EVERY)[1]

    with ending(looked):
        if is_async:
            text = asyncio.run(_stream(f"/api/jobs/{job.pk}/events", secret))
        else:
            response = api.get(f"/jobs/{job.pk}/events")
            assert response["Content-Type"] == "text/event-stream"
            text = b"".join(response.streaming_content).decode()

    first, *_, last = events_of(text)
    assert (first[0], first[1]["state"]) == ("progress", "ready")
    assert (last[0], last[1]["state"], last[1]["result"]) == ("end", "success", 3)


def _request(path: str, secret: str) -> ApplicationCommunicator:
    """Return a request to the application, as a server of ASGI makes one."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", b"testserver"), (b"authorization", f"Bearer {secret}".encode())],
    }
    return ApplicationCommunicator(get_asgi_application(), scope)


async def _status(request: ApplicationCommunicator) -> int:
    await request.send_input({"type": "http.request", "body": b"", "more_body": False})
    status: int = (await request.receive_output(60))["status"]
    return status


async def _answer(request: ApplicationCommunicator) -> int:
    status = await _status(request)
    await _body(request)
    return status


async def _stream(path: str, secret: str) -> str:
    request = _request(path, secret)
    assert await _status(request) == 200
    return (await _body(request)).decode()


async def _body(request: ApplicationCommunicator) -> bytes:
    parts = []
    while True:
        part = await request.receive_output(60)
        parts.append(part.get("body", b""))
        if not part.get("more_body"):
            await request.wait(5)
            return b"".join(parts)


@pytest.fixture
def small_pool() -> Iterator[Any]:
    """Give the default database a pool of 4 connections; yield it."""
    connections.close_all()
    options = connections["default"].settings_dict.setdefault("OPTIONS", {})
    options["pool"] = {"min_size": 0, "max_size": 4, "timeout": 60}
    yield connections["default"].pool
    connections.close_all()
    connections["default"].close_pool()
    del options["pool"]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets how many statements each look has sent."""
    counts: list[int] = []
    look = Watcher._look

    def counted(watcher: Watcher, waits: list[Wait]) -> None:
        with CaptureQueriesContext(connections["default"]) as captured:
            look(watcher, waits)
        counts.append(len(captured))

    monkeypatch.setattr(Watcher, "_look", counted)
    return counts


@pytest.mark.parametrize("path", ["wait?seconds=60", "events"])
def test_hundred_waits_hold_no_thread_and_no_connection(
    small_pool: Any, statements: list[int], path: str
) -> None:
    secret = make_token("many", tenant="acme", scopes=EVERY)[1]
    other = make_token("other", tenant="zebra", scopes=EVERY)[1]
    job = add.using(tenant="acme").delay(1, 2)
    waiting = f"/api/jobs/{job.pk}/{path}"

    def held() -> tuple[int, int]:
        stats = small_pool.get_stats()
        return threading.active_count(), stats["pool_size"] - stats["pool_available"]

    async def scenario() -> list[bytes]:
        assert await _answer(_request("/api/tasks", other)) == 200  # opens the pool
        threads, _ = held()
        requests = [_request(waiting, secret) for _ in range(100)]
        tasks = [asyncio.ensure_future(_status(request)) for request in requests]
        async with asyncio.timeout(40):
            # one thread looks for all of them, with a connection now and then
            while len(watcher.waits) < 100 or held()[0] > threads + 1 or held()[1]:
                await asyncio.sleep(0.01)
        assert await _answer(_request(waiting, secret)) == 429
        assert await _answer(_request("/api/tasks", other)) == 200
        await asyncio.to_thread(run_pending)
        assert await asyncio.gather(*tasks) == [200] * 100
        return [await _body(request) for request in requests]

    connections.close_all()
    bodies = asyncio.run(scenario())

    assert all(b'"state": "success"' in body for body in bodies)
    assert max(statements) <= 3
    assert not watcher.waits


def test_waits_of_a_token_are_limited_under_wsgi(api_of: Callable[..., ApiClient]) -> None:
    api, other = api_of(), api_of()
    job = make_job(make_queue("acme"))
    streams = [api.get(f"/jobs/{job.pk}/events") for _ in range(2)]

    refused = api.get(f"/jobs/{job.pk}/wait?seconds=0")
    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert other.get(f"/jobs/{job.pk}/wait?seconds=0").status_code == 200

    streams.pop().close()
    assert api.get(f"/jobs/{job.pk}/wait?seconds=0").status_code == 200
    with override_settings(TENANTQUEUE=api_settings(WAITS_PER_TOKEN=1)):
        assert api.get(f"/jobs/{job.pk}/wait?seconds=0").status_code == 429

    streams.clear()  # one that no server has closed is collected
    gc.collect()
    assert not watcher.waits


def test_wait_under_wsgi_holds_no_connection(api: ApiClient, looked: threading.Event) -> None:
    job = add.using(tenant="acme").delay(1, 2)

    def end() -> None:
        looked.wait(20)
        wait_until(lambda: own.connection is None)
        run_pending()
        connections.close_all()

    own, thread = connections["default"], threading.Thread(target=end)
    thread.start()
    told = api.get(f"/jobs/{job.pk}/wait?seconds=20").json()
    thread.join()

    assert told["state"] == "success"


def test_failed_look_is_the_error_of_all_requests_that_wait(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = make_job(make_queue("acme"))

    def fail(*_args: object) -> None:
        raise OperationalError("the server is gone")

    monkeypatch.setattr(waits, "_read_jobs", fail)

    answer = api.get(f"/jobs/{job.pk}/wait?seconds=20")

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "the server is gone" in caplog.text
    assert not watcher.waits


def test_stream_ends_when_its_token_is_revoked(api: ApiClient) -> None:
    row, secret = make_token("short", tenant="acme", scopes=EVERY)
    job = make_job(make_queue("acme"))
    stream = iter(ApiClient(secret).get(f"/jobs/{job.pk}/events").streaming_content)
    assert next(stream).startswith(b"event: progress")

    revoke_tokens(row.pk)

    assert list(stream) == []


def test_silent_stream_sends_comments_and_ends(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "SILENT_SECONDS", 0.01)
    monkeypatch.setattr(follow, "STREAM_SECONDS", 0.3)
    job = make_job(make_queue("acme"))

    first, *others = api.get(f"/jobs/{job.pk}/events").streaming_content

    assert first.startswith(b"event: progress")
    assert set(others) == {b": nothing new\n\n"}


def test_progress_of_a_job_is_told(api: ApiClient) -> None:
    job = make_job(make_queue("acme"), state="running", progress_done=3, progress_total=4)
    stream = iter(api.get(f"/jobs/{job.pk}/events").streaming_content)

    ((name, told),) = events_of(next(stream).decode())

    assert name == "progress"
    assert told["progress"] == {"done": 3.0, "total": 4.0, "percent": 75.0, "message": None}
