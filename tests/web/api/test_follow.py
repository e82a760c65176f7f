"""Long poll and server-sent events, as servers of both kinds run them, with a job that ends."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import connections

from django_tenantqueue.models import Job
from django_tenantqueue.operations.tokens import create_token, revoke_token
from django_tenantqueue.testing import run_pending
from django_tenantqueue.web.api import follow
from tests.factories import make_job, make_queue
from tests.testapp.tasks import add

from .conftest import EVERY, ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


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
    """Return an event that is set once a request has seen the job unfinished."""
    event, find = threading.Event(), follow.find_job

    def find_job(*args: Any, **options: Any) -> Job:
        job = find(*args, **options)
        if not job.is_final:
            event.set()
        return job

    monkeypatch.setattr(follow, "find_job", find_job)
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

    assert (told["state"], told["final"]) == ("created", False)


def test_wait_is_refused_once_its_token_is_revoked(looked: threading.Event) -> None:
    row, secret = create_token("short", tenant="acme", scopes=EVERY)
    job = add.using(tenant="acme").delay(1, 2)

    def revoke() -> None:
        looked.wait(20)
        revoke_token(row.pk)
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


def test_events_tell_the_end_under_wsgi(api: ApiClient, looked: threading.Event) -> None:
    job = add.using(tenant="acme").delay(1, 2)

    with ending(looked):
        response = api.get(f"/jobs/{job.pk}/events")
        text = b"".join(response.streaming_content).decode()

    assert response["Content-Type"] == "text/event-stream"
    first, *_, last = events_of(text)
    assert (first[0], first[1]["state"]) == ("progress", "created")
    assert (last[0], last[1]["state"], last[1]["result"]) == ("end", "success", 3)


def test_events_tell_the_end_under_asgi(looked: threading.Event) -> None:
    secret = create_token("async", tenant="acme", scopes=EVERY)[1]
    job = add.using(tenant="acme").delay(1, 2)

    with ending(looked):
        text = asyncio.run(_stream(f"/api/jobs/{job.pk}/events", secret))

    first, *_, last = events_of(text)
    assert (first[0], first[1]["state"]) == ("progress", "created")
    assert (last[0], last[1]["state"], last[1]["result"]) == ("end", "success", 3)


async def _stream(path: str, secret: str) -> str:
    """Return what the application streams, as a server of ASGI would run it."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"authorization", f"Bearer {secret}".encode())],
    }
    communicator = ApplicationCommunicator(get_asgi_application(), scope)
    await communicator.send_input({"type": "http.request", "body": b"", "more_body": False})
    start = await communicator.receive_output(20)
    assert start["status"] == 200
    parts = []
    while True:
        part = await communicator.receive_output(20)
        parts.append(part.get("body", b""))
        if not part.get("more_body"):
            await communicator.wait(5)
            return b"".join(parts).decode()


def test_stream_ends_when_its_token_is_revoked(api: ApiClient) -> None:
    row, secret = create_token("short", tenant="acme", scopes=EVERY)
    job = make_job(make_queue("acme"))
    stream = iter(ApiClient(secret).get(f"/jobs/{job.pk}/events").streaming_content)
    assert next(stream).startswith(b"event: progress")

    revoke_token(row.pk)

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
