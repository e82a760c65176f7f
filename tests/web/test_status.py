"""The status of a job, for clients that hold its link."""

from __future__ import annotations

import asyncio
import inspect
import time

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.cache import cache
from django.core.signing import TimestampSigner
from django.db import transaction
from django.test import Client, override_settings

from django_tenantqueue.exceptions import Unsupported, WaitTimeout
from django_tenantqueue.link_tokens import read_job_token, sign_job_id
from django_tenantqueue.models import Job
from django_tenantqueue.testing import run_pending
from tests.factories import make_job
from tests.testapp.tasks import echo, fail, noop, report_progress

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]


def answer(client: Client, job) -> dict:
    response = client.get(job.status_url)
    assert response.status_code == 200
    return response.json()


def test_state_is_told_without_login_when_a_job_waits(client):
    job = noop.delay()

    response = client.get(job.status_url)

    assert response.json() == {
        "id": job.pk,
        "task": "tests.testapp.tasks.noop",
        "state": "ready",
        "final": False,
        "attempt": 0,
        "max_attempts": 5,
        "progress": {"done": None, "total": None, "percent": None, "message": None},
        "result": None,
        "result_missing": False,
        "error": None,
        "created_at": response.json()["created_at"],
        "queued_at": None,
        "started_at": None,
        "finished_at": None,
    }
    assert response["Retry-After"] == "1"
    assert "no-store" in response["Cache-Control"]


def test_result_is_told_when_a_job_has_succeeded(client):
    job = echo.delay({"a": [1, "é"]})
    run_pending()

    response = client.get(job.status_url)

    told = response.json()
    assert (told["state"], told["final"], told["result"]) == ("success", True, {"a": [1, "é"]})
    assert told["created_at"] <= told["queued_at"] <= told["started_at"] <= told["finished_at"]
    assert "Retry-After" not in response


@override_settings(TENANTQUEUE={"STATUS_ERROR": "{message}"})
@pytest.mark.parametrize("errors", [[{}], [{"class": "ValueError"}], ["no"], {"a": 1}, "no", [1]])
def test_state_is_told_when_the_errors_are_spoilt(client, errors):
    job = make_job(state="error", errors=errors)

    assert answer(client, job)["state"] == "error"


def test_last_error_is_told_when_a_job_waits_for_its_next_attempt(client):
    job = fail.delay("out of order")
    run_pending()

    assert answer(client, job)["error"] == "Something went wrong."


def test_progress_is_told_when_a_job_has_reported_it(client):
    job = report_progress.delay(4)
    run_pending()

    assert answer(client, job)["progress"] == {
        "done": 4.0,
        "total": 4.0,
        "percent": 100.0,
        "message": "step 4",
    }


@override_settings(TENANTQUEUE={"RESULT_STORE": "default"})
def test_loss_is_told_when_the_cache_has_dropped_the_result(client):
    job = echo.delay(5)
    run_pending()
    assert answer(client, job.refresh())["result"] == 5
    cache.clear()

    told = answer(client, job)

    assert (told["result"], told["result_missing"]) == (None, True)


@pytest.mark.parametrize(
    "token",
    ["5", "5:abc", "", "x:y:z", TimestampSigner(salt="other").sign("5")],
    ids=["bare id", "forged", "empty", "garbage", "other salt"],
)
def test_nothing_is_told_when_the_token_is_forged(client, token):
    make_job()

    assert client.get(f"/jobs/{token}/status/").status_code == 404


def test_nothing_is_told_when_one_character_was_changed(client):
    url = noop.delay().status_url
    changed = url.replace("/jobs/", "/jobs/1")

    response = client.get(changed)

    assert response.status_code == 404
    assert response.json() == {"error": "no such job, or the link has expired"}


def test_nothing_is_told_when_the_link_has_expired(client, monkeypatch):
    url = noop.delay().status_url
    now = time.time()

    monkeypatch.setattr("django.core.signing.time.time", lambda: now + 6.9 * 86400)
    assert client.get(url).status_code == 200
    monkeypatch.setattr("django.core.signing.time.time", lambda: now + 7.1 * 86400)
    assert client.get(url).status_code == 404


def test_nothing_is_told_when_the_job_does_not_exist(client):
    assert client.get(f"/jobs/{sign_job_id(987654321)}/status/").status_code == 404


def test_nothing_is_told_when_the_key_of_the_project_has_changed(client):
    url = noop.delay().status_url

    with override_settings(SECRET_KEY="another"):
        assert client.get(url).status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_method_is_refused_when_it_is_not_a_read(client, method):
    assert getattr(client, method)(noop.delay().status_url).status_code == 405


def test_token_names_the_job_when_it_is_read():
    assert read_job_token(sign_job_id(7)) == 7
    assert sign_job_id(7) != sign_job_id(8)


each_wait = pytest.mark.parametrize(
    "wait", [Job.wait, async_to_sync(Job.await_end)], ids=["wait", "await_end"]
)


@each_wait
def test_waiting_is_refused_when_a_transaction_is_open(wait):
    job = noop.delay()

    with transaction.atomic(), pytest.raises(Unsupported, match="cannot be waited for"):
        wait(job)


@pytest.mark.django_db(transaction=True)
def test_waiting_ends_when_the_job_has_ended():
    job = noop.delay()
    run_pending()

    assert job.wait(timeout=0).state == "success"


@each_wait
@pytest.mark.django_db(transaction=True)
def test_waiting_gives_up_when_the_time_is_over(wait):
    job = noop.delay()

    with pytest.raises(WaitTimeout, match=f"job {job.pk} is still ready after 0 s"):
        wait(job, timeout=0)


@pytest.mark.parametrize("call", [Job.wait, Job.await_end], ids=["wait", "await_end"])
def test_waits_say_the_same_when_they_are_asked_alike(call):
    parameters = inspect.signature(call).parameters
    assert {name: p.default for name, p in parameters.items() if name != "self"} == {
        "timeout": 30.0
    }


@pytest.mark.django_db(transaction=True)
def test_awaiting_ends_when_the_job_has_ended():
    job = noop.delay()
    looks = []

    async def follow():
        waiting = asyncio.ensure_future(job.await_end(timeout=60))
        await asyncio.sleep(0)
        looks.append(job.state)
        await sync_to_async(run_pending)()
        return await waiting

    assert async_to_sync(follow)() is job
    assert (looks, job.state) == (["ready"], "success")
