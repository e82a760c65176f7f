"""An endpoint that fails in a row is tried by one job at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.receiver import Reply
from django_tenantqueue.contrib.http import breaker as module
from django_tenantqueue.contrib.http.breaker import Breaker
from django_tenantqueue.exceptions import Postpone

from .conftest import Endpoint, local
from .test_job import error_of

ACME = ("acme", "https://a.example")
OTHER = ("other", "https://a.example")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Yield the time that the breaker reads, which a test may change."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def broken(settings: Any, clock: list[float]) -> Breaker:
    """Return a breaker for which acme's endpoint has failed three times, as often as it may."""
    settings.TENANTQUEUE = {"HTTP": {"BREAKER_FAILURES": 3}}
    made = Breaker()
    for _ in range(3):
        attempt(made, is_healthy=False)
    return made


def attempt(breaker: Breaker, *, is_healthy: bool | None, endpoint: Any = ACME) -> None:
    with breaker.attempt(endpoint) as made:
        made.is_healthy = is_healthy


def test_endpoint_that_failed_in_a_row_is_left_alone_for_a_while(broken: Breaker):
    with pytest.raises(Postpone, match="has failed 3 times in a row") as caught:
        attempt(broken, is_healthy=True)

    assert 10 <= (caught.value.after_seconds or 0) <= 20


def test_same_endpoint_of_another_tenant_is_not_concerned(broken: Breaker):
    attempt(broken, is_healthy=True, endpoint=OTHER)


def test_one_job_at_a_time_tries(broken: Breaker, clock: list[float]):
    clock[0] += module.TRY_SECONDS

    with broken.attempt(ACME), pytest.raises(Postpone):
        attempt(broken, is_healthy=True)
    attempt(broken, is_healthy=None)  # the first has said nothing


def test_failed_try_starts_the_pause_again(broken: Breaker, clock: list[float]):
    clock[0] += module.TRY_SECONDS
    attempt(broken, is_healthy=False)

    with pytest.raises(Postpone, match="has failed 4 times"):
        attempt(broken, is_healthy=True)


def test_success_lets_all_jobs_through(broken: Breaker, clock: list[float]):
    clock[0] += module.TRY_SECONDS
    attempt(broken, is_healthy=True)

    with broken.attempt(ACME), broken.attempt(ACME):
        pass


@pytest.mark.parametrize(
    ("most", "attempts"), [(2, (False, True, False, True)), (None, (False,) * 100)]
)
def test_breaker_stays_closed_when_successes_are_between_or_it_is_off(
    settings: Any, most: int | None, attempts: tuple[bool, ...]
):
    settings.TENANTQUEUE = {"HTTP": {"BREAKER_FAILURES": most}}
    breaker = Breaker()

    for is_healthy in attempts:
        attempt(breaker, is_healthy=is_healthy)


def test_number_of_remembered_endpoints_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "REMEMBERED", 2)
    breaker = Breaker()

    for tenant in "abc":
        attempt(breaker, is_healthy=False, endpoint=(tenant, "https://a.example"))

    assert [tenant for tenant, _ in breaker._troubles] == ["b", "c"]


def share_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all clients share one: each job of run_pending() has an event loop of its own."""
    shared = Breaker()
    monkeypatch.setattr("django_tenantqueue.contrib.http.client.Breaker", lambda: shared)


@pytest.mark.parametrize(
    ("reply", "rule", "is_counted"),
    [
        (Reply(500), "status", True),
        (Reply(429), "status", True),
        (Reply(after=None), "status", True),
        (Reply(404), "status", False),
        (Reply(500, b'{"status": "success"}'), "fireworq", False),
        (Reply(200, b'{"status": "failure"}'), "fireworq", False),
    ],
)
def test_job_keeps_its_attempts_while_another_tries(
    endpoint: Endpoint,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    reply: Reply,
    rule: str,
    is_counted: bool,
):
    settings.TENANTQUEUE = local(BREAKER_FAILURES=1)
    share_breaker(monkeypatch)
    endpoint.replies = [reply]
    arguments = {"rule": rule, "request_timeout": 0.05 if reply.after is None else 5}

    endpoint.send(**arguments)
    job = endpoint.send(**arguments)

    if is_counted:
        state, kind, message = error_of(job)
        assert (state, kind, job.attempt) == ("scheduled", "Postpone", 0)
        assert "has failed 1 times in a row" in message
        assert len(endpoint.received) == 1
    else:
        assert len(endpoint.received) == 2


def test_breaker_is_that_of_the_tenant(
    endpoint: Endpoint, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    settings.TENANTQUEUE = local(BREAKER_FAILURES=1)
    share_breaker(monkeypatch)
    endpoint.replies = [Reply(500), Reply()]

    states = [endpoint.send(tenant=tenant).state for tenant in ("acme", "other")]

    assert states == ["scheduled", "success"]
