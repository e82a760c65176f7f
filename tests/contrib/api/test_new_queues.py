"""Queues that requests make: once all is known to be right, and not too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.queries import enqueue as queries

from .conftest import ApiClient, api_settings

JOB = {"task": "tests.testapp.tasks.add", "args": [1]}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Return a list: how many queues each statement makes, and whether a transaction is open."""
    statements: list[tuple[int, bool]] = []
    create = queries.create_queues

    def noted(using: str, new: Any) -> Any:
        statements.append((len(new), connection.in_atomic_block))
        return create(using, new)

    monkeypatch.setattr(queries, "create_queues", noted)
    return statements


@pytest.fixture
def wide(api_of: Callable[..., ApiClient]) -> Iterator[ApiClient]:
    with override_settings(TENANTQUEUE=api_settings(NEW_QUEUES_PER_DAY=30)):
        yield api_of(queues=["*"])


def batch(count: int, *more: dict[str, Any]) -> dict[str, Any]:
    """Return a batch in which each job names another new queue."""
    return {"jobs": [*({**JOB, "queue": f"q{n}"} for n in range(count)), *more]}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "k"}])
def test_queues_of_a_batch_are_made_by_one_statement_outside_of_a_transaction(
    wide: ApiClient, made: list[tuple[int, bool]], headers: dict[str, str]
) -> None:
    response = wide.post("/jobs/batch", batch(20), **headers)

    assert response.status_code == 201, response.content
    assert made == [(20, False)]
    assert TenantQueue.objects.count() == 20


@pytest.mark.django_db(transaction=True)
def test_queue_of_one_job_with_a_key_is_made_outside_of_a_transaction(
    wide: ApiClient, made: list[tuple[int, bool]]
) -> None:
    assert wide.post("/jobs", {**JOB, "queue": "q"}, Idempotency_Key="k").status_code == 201

    assert made == [(1, False)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"task": "nope"}, 422),
        ({"task": JOB["task"]}, 422),
        ({**JOB, "args": ["\x00"]}, 422),
        ({**JOB, "priority": -1}, 403),
        ({**JOB, "queue": "old"}, 409),
    ],
)
def test_refused_batch_leaves_no_queue(wide: ApiClient, wrong: dict[str, Any], status: int) -> None:
    TenantQueue.objects.create(tenant="acme", name="old", retired=True)

    response = wide.post("/jobs/batch", batch(3, wrong))

    assert (response.status_code, response.json()["index"]) == (status, 3)
    assert TenantQueue.objects.get().name == "old"
    assert wide.post("/jobs", {**JOB, "queue": "new", "args": ["\x00"]}).status_code == 422
    assert TenantQueue.objects.get().name == "old"


@pytest.mark.django_db(transaction=True)
def test_batch_whose_key_was_used_leaves_no_queue(wide: ApiClient) -> None:
    wide.post("/jobs", JOB, Idempotency_Key="k")

    assert wide.post("/jobs/batch", batch(3), Idempotency_Key="k").status_code == 422

    assert TenantQueue.objects.get().name == "default"


@pytest.mark.django_db
def test_clients_make_so_many_queues_of_a_tenant_in_a_day(
    wide: ApiClient, api_of: Callable[..., ApiClient]
) -> None:
    assert wide.post("/jobs/batch", batch(31)).status_code == 429
    assert not Job.objects.exists()
    assert wide.post("/jobs/batch", batch(30)).status_code == 201

    refused = wide.post("/jobs", {**JOB, "queue": "new"})
    assert (refused.status_code, refused["Retry-After"]) == (429, "3600")
    assert "NEW_QUEUES_PER_DAY" in refused.json()["detail"]
    assert wide.post("/jobs", {**JOB, "queue": "q7"}).status_code == 201
    other = api_of("zebra", queues=["*"])
    assert other.post("/jobs", {**JOB, "queue": "new"}).status_code == 201

    TenantQueue.objects.update(created_at=timezone.now() - timedelta(days=1, seconds=1))
    assert wide.post("/jobs", {**JOB, "queue": "new"}).status_code == 201
