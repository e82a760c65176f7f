from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from django_tenantqueue.models import Change
from django_tenantqueue.status.masking import MASK
from tests.factories import make_job, make_jobs, make_queue
from tests.sample_tasks import bills

from .conftest import ApiClient

pytestmark = pytest.mark.django_db


def test_secret_arguments_are_masked(api: ApiClient) -> None:
    job = {"task": "tests.testapp.tasks.echo", "args": [{"password": "hunter2", "user": "ann"}]}
    job_id = api.post("/jobs", job).json()["id"]

    told = api.get(f"/jobs/{job_id}")

    assert told.json()["args"] == [{"password": MASK, "user": "ann"}]
    assert b"hunter2" not in told.content


def test_numbers_are_read_as_they_were_sent(api: ApiClient) -> None:
    job = {"task": "tests.testapp.tasks.echo", "args": [[-0.0, 1e22, 5, {"value": 1.5}]]}
    job_id = api.post("/jobs", job).json()["id"]

    assert str(api.get(f"/jobs/{job_id}").json()["args"]) == str(job["args"])


@pytest.mark.parametrize("page", ["", "/wait"])
@pytest.mark.parametrize("value", ["x", None, [1], {}])
def test_number_that_is_none_is_shown_as_it_is_stored(
    api: ApiClient, page: str, value: object
) -> None:
    kwargs = {"__tenantqueue__": "float", "value": value}
    job = make_job(make_queue("acme"), state="success", args={"args": [kwargs], "kwargs": kwargs})

    told = api.get(f"/jobs/{job.pk}{page}")

    assert (told.status_code, told.json()["kwargs"]) == (200, kwargs)


def test_errors_have_no_traceback(api: ApiClient) -> None:
    error = {"at": "2030-01-01T00:00:00Z", "attempt": 1, "class": "E", "message": "broken"}
    job = make_job(
        make_queue("acme"), state="error", errors=[{**error, "traceback": "File secret.py"}]
    )

    told = api.get(f"/jobs/{job.pk}")

    assert told.json()["error"] == "broken"
    assert told.json()["errors"] == [
        {"at": error["at"], "attempt": 1, "error_class": "E", "message": "broken"}
    ]
    assert b"secret.py" not in told.content


def test_waiting_job_is_cancelled_and_recorded(api: ApiClient) -> None:
    job = make_job(make_queue("acme"))

    told = api.post(f"/jobs/{job.pk}/cancel")

    assert (told.status_code, told.json()["state"]) == (200, "cancelled")
    change = Change.objects.latest("pk")
    assert (change.actor, change.source) == ("token client 0", "api")
    assert (change.action, change.object_ids, change.tenant) == ("cancel", [job.pk], "acme")
    assert api.post(f"/jobs/{job.pk}/cancel").status_code == 409


def test_failed_job_is_retried_and_recorded(api: ApiClient) -> None:
    job = make_job(make_queue("acme"), state="error")

    told = api.post(f"/jobs/{job.pk}/retry")

    assert (told.status_code, told.json()["state"]) == (200, "ready")
    assert Change.objects.latest("pk").actor == "token client 0"
    assert api.post(f"/jobs/{job.pk}/retry").status_code == 409


def test_priority_and_time_of_a_waiting_job_are_tuned(api: ApiClient) -> None:
    job = make_job(make_queue("acme"))

    told = api.patch(f"/jobs/{job.pk}", {"priority": 7, "run_at": "2090-01-01T00:00:00Z"})

    assert (told.json()["priority"], told.json()["state"]) == (7, "scheduled")
    assert set(Change.objects.values_list("actor", flat=True)) == {"token client 0"}


def test_ended_job_is_not_tuned(api: ApiClient) -> None:
    job = make_job(make_queue("acme"), state="success")

    assert api.patch(f"/jobs/{job.pk}", {"priority": 7}).status_code == 409
    assert not Change.objects.exists()


def walk(api: ApiClient, query: str = "") -> list[int]:
    found: list[int] = []
    before = ""
    for _ in range(20):
        page = api.get(f"/jobs?limit=3{before}{query}").json()
        found += [item["id"] for item in page["items"]]
        if page["next"] is None:
            return found
        before = f"&before={page['next']}"
    raise AssertionError("the pages have no end")


def test_pages_have_each_job_once_and_the_newest_first(api: ApiClient) -> None:
    queue, other = make_queue("acme"), make_queue("acme", "other")
    make_jobs(make_queue("zebra"), 5)
    ids = [*make_jobs(queue, 4), *make_jobs(other, 3, state="success"), *make_jobs(queue, 1)]
    failed = make_job(queue, state="error", task="app.special")

    assert walk(api) == sorted([*ids, failed.pk], reverse=True)
    assert walk(api, "&state=finished") == [failed.pk, *sorted(ids[4:7], reverse=True)]
    assert walk(api, "&queue=other") == sorted(ids[4:7], reverse=True)
    assert walk(api, "&task=app.special") == [failed.pk]
    assert walk(api, "&queue=nowhere") == []


def test_jobs_are_found_by_their_columns(api: ApiClient) -> None:
    queue, other = make_queue("acme"), make_queue("zebra")
    columns: dict[str, Any] = {
        "labels": ["nightly"],
        "created_by": "7",
        "priority": 120,
        "state": "error",
        "errors": [{"class": "ValueError"}],
        "args": {"search": ["invoice=4711"]},
        "limit_user": "acme/ada",
        "session_key": "acme/one",
        "task": bills.name,
        "created_at": datetime(2026, 11, 24, 12, tzinfo=UTC),
    }
    mine = make_job(queue, **columns)
    make_job(other, **columns)
    make_job(queue)

    for query in (
        *("label=nightly", "created_by=7", "priority=120", "error=ValueError"),
        *("argument=invoice%3D4711", "limit_user=ada", "session=one", "ended_from=1h"),
        *("created_from=2026-11-24&created_to=2026-11-25", "created_to=2026-11-24T13:00Z"),
    ):
        assert walk(api, f"&{query}") == [mine.pk], query
    for query in ("created_from=soon", "argument=x", "priority=high", "label=%00", "label="):
        assert api.get(f"/jobs?{query}").status_code == 422, query


@pytest.mark.parametrize(
    "path",
    [
        *("?limit=0", "?limit=201", "?before=0", "?before=x"),
        *("?state=x", "?queue=%00", "?task=%00"),
        *(f"/{job_id}" for job_id in ("0", "-1", "x", 2**63, "1.5", "%00")),
    ],
)
def test_wrong_filter_or_id_is_refused(api: ApiClient, path: str) -> None:
    assert api.get(f"/jobs{path}").status_code == 422


def test_result_that_the_cache_has_dropped_is_missing(api: ApiClient) -> None:
    job = make_job(make_queue("acme"), state="success", result_ref="default:nothing")

    told = api.get(f"/jobs/{job.pk}").json()

    assert (told["result"], told["result_missing"]) == (None, True)


def test_other_methods_and_paths_are_problems(api: ApiClient) -> None:
    method, path = api.send("DELETE", "/jobs"), api.get("/nothing/here")

    assert (method.status_code, method["Allow"]) == (405, "GET, POST")
    assert path.status_code == 404
    for answer in (method, path):
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


def test_document_and_its_page_need_no_token(api: ApiClient) -> None:
    public = ApiClient()

    assert public.get("/openapi.json").json()["openapi"].startswith("3.")
    assert b"openapi.json" in public.get("/docs").content


@pytest.mark.django_db(transaction=True)
def test_requests_have_transactions_of_their_own(
    api: ApiClient, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ATOMIC_REQUESTS would keep a job from the workers, and is not possible with coroutines."""
    monkeypatch.setitem(settings.DATABASES["default"], "ATOMIC_REQUESTS", True)
    job_id = api.post("/jobs", {"task": "tests.testapp.tasks.noop"}).json()["id"]

    assert api.get(f"/jobs/{job_id}/wait?seconds=0").json()["state"] == "ready"
