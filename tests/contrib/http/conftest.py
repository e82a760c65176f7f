"""A receiver of HTTP jobs on this machine, and settings that allow to call it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.receiver import Received, Receiver, Reply
from django_tenantqueue.contrib.http import http_job
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending


def local(**more: Any) -> dict[str, Any]:
    """Return settings of HTTP jobs that call this machine."""
    return {"HTTP": {"ALLOWED_HOSTS": ["127.0.0.1", "*.example"], "TIMEOUT": 5, **more}}


LOCAL = local()


class Endpoint:
    """Answers with `replies`, one after another; the last one is repeated."""

    def __init__(self) -> None:
        self.replies = [Reply()]
        self.received: list[Received] = []
        self.url = ""

    def answer(self, received: Received) -> Reply:
        self.received.append(received)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def send(self, payload: object = None, /, **arguments: Any) -> Job:
        """Run one job that calls this endpoint; return it as it is after this attempt."""
        options = {name: arguments.pop(name) for name in ("tenant",) if name in arguments}
        url = arguments.pop("url", self.url)
        job = http_job.using(**options).delay(url, payload, **arguments)
        run_pending()
        return job.refresh()


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    with Receiver(lambda received: Reply()) as made:
        yield made


@pytest.fixture
def endpoint(db: None, settings: Any, receiver: Receiver) -> Endpoint:
    settings.TENANTQUEUE = LOCAL
    made = Endpoint()
    made.url = f"http://127.0.0.1:{receiver.port}/hook"
    receiver.answer = made.answer
    return made
