"""What a token may name: queues and priorities."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import ConcurrentJobMonitor, Job, TenantQueue
from tests.factories import make_job, make_queue
from tests.testapp.tasks import noop

from .conftest import ApiClient

NEEDS = "routing schedules"
pytestmark = pytest.mark.django_db
JOB = {"task": "tests.testapp.tasks.add", "args": [1]}


def names(tenant: str = "acme") -> set[str]:
    return set(TenantQueue.objects.filter(tenant=tenant).values_list("name", flat=True))


def test_token_without_queues_names_those_that_exist_or_are_declared(api: ApiClient) -> None:
    make_queue("acme", "mine")
    make_queue("zebra", "theirs")

    for queue, status in (("mine", 201), ("reports", 201), ("invented", 422), ("theirs", 422)):
        response = api.post("/jobs", {**JOB, "queue": queue})
        assert response.status_code == status, response.content

    assert "has no queue 'theirs', and an API token without queues" in response.json()["detail"]
    assert names() == {"mine", "reports"}


def test_token_with_queues_names_these_alone(api_of: Callable[..., ApiClient]) -> None:
    api = api_of(queues=["mail", "report-*"])
    make_queue("acme", "mine")

    for queue, status in (("mail", 201), ("report-7", 201), ("mine", 403), ("reports", 403)):
        response = api.post("/jobs", {**JOB, "queue": queue})
        assert response.status_code == status, response.content

    assert "only mail, report-*" in response.json()["detail"]
    assert api.post("/jobs", JOB).status_code == 201  # as the task says
    assert names() == {"mine", "mail", "report-7", "default"}


def test_batch_that_names_a_wrong_queue_or_priority_is_refused(api: ApiClient) -> None:
    for wrong in ({"queue": "invented"}, {"priority": -1}, {"priority": 401}):
        response = api.post("/jobs/batch", {"jobs": [JOB, {**JOB, **wrong}]})
        assert (response.status_code, response.json()["index"]) in ((422, 1), (403, 1))

    assert not Job.objects.exists()


def test_priorities_are_those_of_the_token_wherever_one_is_given(
    api_of: Callable[..., ApiClient],
) -> None:
    api, usual = api_of(priorities=(-5, 10)), api_of()
    job = make_job(make_queue("acme"))
    monitor = ConcurrentJobMonitor.objects.start("m", [noop.call()], tenant="acme", parallel=1)
    schedule = Schedule.objects.create(
        tenant="acme", name="s", task="t", expression="1h", kind="interval"
    )

    def statuses(client: ApiClient, priority: int) -> set[int]:
        change = {"priority": priority}
        return {
            client.post("/jobs", {**JOB, **change}).status_code,
            client.patch(f"/jobs/{job.pk}", change).status_code,
            client.patch(f"/monitors/{monitor.pk}", change).status_code,
            client.patch(f"/schedules/{schedule.pk}", change).status_code,
        }

    assert statuses(usual, 0) == statuses(usual, 400) == {200, 201}
    assert statuses(api, -5) == statuses(api, 10) == {200, 201}
    assert statuses(usual, -1) == statuses(usual, 401) == {403}
    assert statuses(api, -6) == statuses(api, 11) == {403}


def test_queues_are_those_of_the_token_wherever_one_is_given(
    api_of: Callable[..., ApiClient],
) -> None:
    api, usual = api_of(queues=["mail"]), api_of()
    for name in ("mail", "mine"):
        make_queue("acme", name)
    schedule = Schedule.objects.create(
        tenant="acme", name="s", task="t", expression="1h", kind="interval"
    )

    def statuses(client: ApiClient, queue: str) -> list[int]:
        return [
            client.patch(f"/schedules/{schedule.pk}", {"queue": queue}).status_code,
            client.send("PUT", "/routings/a.*", {"queue": queue}).status_code,
            client.patch(f"/queues/{queue}", {"weight": 2}).status_code,
        ]

    assert statuses(usual, "mine") == statuses(api, "mail") == [200] * 3
    assert statuses(api, "mine") == [403] * 3
    assert statuses(usual, "invented") == [422, 422, 404]
    assert Routing.objects.get().queue == "mail"
