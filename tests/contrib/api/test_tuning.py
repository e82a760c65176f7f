from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from django_tenantqueue.models import Change, ConcurrentJobMonitor, Session, TenantQueue
from tests.factories import make_job, make_jobs, make_queue
from tests.testapp.tasks import noop

from .conftest import ApiClient

pytestmark = pytest.mark.django_db


def by_token() -> list[tuple[str, str, str]]:
    """Return what the list of changes says of the actor, newest first."""
    return list(Change.objects.order_by("-pk").values_list("actor", "source", "action"))


def test_queue_is_read_with_its_counts(api: ApiClient) -> None:
    queue = make_queue("acme")
    make_jobs(queue, 3)
    make_job(queue, state="running")

    told = api.get("/queues/default").json()

    assert (told["running"], told["waiting"]) == (1, 3)


def test_named_columns_of_a_queue_are_changed(api: ApiClient) -> None:
    queue = make_queue("acme", num_slots=5, weight=3)

    told = api.patch("/queues/default", {"num_slots": None, "paused": True}).json()

    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight, queue.paused) == (None, 3, True)
    assert (told["num_slots"], told["weight"], told["paused"]) == (None, 3, True)
    assert by_token() == [("token client 0", "api", "tune")]


@pytest.mark.parametrize(
    "changes",
    [
        {"num_slots": -1},
        {"weight": None},
        {"max_per_second": -1.0},
        {"burst": 0},
        {"name": "other"},
        {"tenant": "zebra"},
        {"paused": "yes"},
    ],
)
def test_wrong_value_of_a_queue_is_refused(api: ApiClient, changes: dict[str, Any]) -> None:
    make_queue("acme")
    before = TenantQueue.objects.values().get()

    assert api.patch("/queues/default", changes).status_code == 422

    assert TenantQueue.objects.values().get() == before
    assert not Change.objects.exists()


def test_names_with_slashes_are_read(api: ApiClient) -> None:
    make_queue("acme", "ü b/c")

    assert api.get("/queues/%C3%BC%20b%2Fc").json()["name"] == "ü b/c"
    assert api.patch("/queues/%C3%BC%20b%2Fc", {"num_slots": 7}).json()["num_slots"] == 7
    assert api.get("/queues/%00").status_code == 404


def test_pages_of_queues_follow_their_ids(api: ApiClient) -> None:
    names = [f"q{number}" for number in range(5)]
    for name in names:
        make_queue("acme", name)
    make_queue("zebra", "q9")
    found, after = [], 0
    while after is not None:
        page = api.get(f"/queues?limit=2&after={after}").json()
        found += [item["name"] for item in page["items"]]
        after = page["next"]

    assert found == names
    assert api.get(f"/queues?after={2**63 - 1}").json()["items"] == []


def test_halted_session_goes_on_when_it_is_resumed(api: ApiClient) -> None:
    row = Session.objects.create(
        kind="serial", tenant="acme", key="k", gate_key="acme/k", halted_at=timezone.now()
    )

    told = api.patch(f"/sessions/{row.pk}", {"paused": False, "on_failure": "halt"}).json()

    assert (told["halted_at"], told["on_failure"]) == (None, "halt")
    assert {actor for actor, *_ in by_token()} == {"token client 0"}


@pytest.mark.parametrize("changes", [{"num_slots": 3}, {"on_wait": "x"}, {"key": "other"}])
def test_wrong_value_of_a_session_is_refused(api: ApiClient, changes: dict[str, Any]) -> None:
    row = Session.objects.create(kind="serial", tenant="acme", key="k", gate_key="acme/k")

    assert api.patch(f"/sessions/{row.pk}", changes).status_code == 422


def test_monitor_is_tuned_and_cancelled(api: ApiClient) -> None:
    details = [noop.call() for _ in range(3)]
    row = ConcurrentJobMonitor.objects.start("m", details, tenant="acme", parallel=1)

    told = api.patch(f"/monitors/{row.pk}", {"parallel": 7, "paused": True}).json()
    assert (told["parallel"], told["paused"], told["status"]) == (7, True, "paused")

    assert api.post(f"/monitors/{row.pk}/cancel").json() == {"ended": 3}
    assert api.get(f"/monitors/{row.pk}").json()["cancelled_at"] is not None
    assert {actor for actor, *_ in by_token()} == {"token client 0"}
