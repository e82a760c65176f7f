"""The statuses of many jobs in one request."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.link_tokens import sign_job_id
from django_tenantqueue.models import Job
from django_tenantqueue.states import State
from tests.factories import make_job, make_jobs, make_queue

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.web.urls")]
URL = "/jobs/status/"


def ask(client: Client, tokens: list[str], method: str = "post") -> list[dict[str, Any]]:
    response = getattr(client, method)(URL, {"token": tokens})
    assert response.status_code == 200
    entries: list[dict[str, Any]] = response.json()["jobs"]
    assert [entry["token"] for entry in entries] == list(dict.fromkeys(tokens))
    return entries


@pytest.mark.parametrize("method", ["get", "post"])
def test_each_job_is_told_as_by_its_own_address_when_many_are_asked_for(
    client: Client, method: str
) -> None:
    jobs = [make_job(state=state) for state in State]

    entries = ask(client, [sign_job_id(job.pk) for job in jobs], method)

    assert [entry["job"] for entry in entries] == [client.get(j.status_url).json() for j in jobs]
    assert {entry["error"] for entry in entries} == {None}


def test_bad_token_spoils_no_other_when_tokens_are_mixed(client: Client) -> None:
    job = make_job()
    good = sign_job_id(job.pk)

    entries = ask(client, ["forged", sign_job_id(987_654_321), good, f"1{good}", ""])

    assert [entry["job"] and entry["job"]["id"] for entry in entries] == [
        None,
        None,
        job.pk,
        None,
        None,
    ]
    assert entries[0]["error"] == entries[1]["error"] == "no such job, or the link has expired"


def test_queries_are_two_when_a_hundred_jobs_are_asked_for(client: Client) -> None:
    queue = make_queue()
    ids = [*make_jobs(queue, 50), *make_jobs(queue, 50, state=State.ERROR)]

    with CaptureQueriesContext(connection) as queries:
        entries = ask(client, [sign_job_id(job_id) for job_id in ids])

    assert [entry["job"]["id"] for entry in entries] == ids
    assert len(queries) == 2  # unfinished jobs, the history


def test_history_is_left_alone_when_no_job_has_ended(client: Client) -> None:
    ids = make_jobs(make_queue(), 3)

    with CaptureQueriesContext(connection) as queries:
        ask(client, [sign_job_id(job_id) for job_id in ids])

    assert len(queries) == 1


@pytest.mark.parametrize(("count", "status"), [(0, 400), (100, 200), (101, 400)])
def test_request_is_refused_when_it_has_no_token_or_too_many(
    client: Client, count: int, status: int
) -> None:
    tokens = [sign_job_id(number) for number in range(count)]

    response = client.post(URL, {"token": tokens})

    assert response.status_code == status
    assert status == 200 or response.json() == {
        "error": f"give 1 to 100 parameters named token, not {count}"
    }


def test_post_needs_no_csrf_token_when_the_site_checks_them() -> None:
    client = Client(enforce_csrf_checks=True)

    assert client.post(URL, {"token": [sign_job_id(make_job().pk)]}).status_code == 200


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_method_is_refused_when_it_changes_something(client: Client, method: str) -> None:
    assert getattr(client, method)(URL).status_code == 405


def test_next_poll_is_advised_while_a_job_has_not_ended(client: Client) -> None:
    ended, waiting = sign_job_id(make_job(state=State.SUCCESS).pk), sign_job_id(make_job().pk)

    response = client.post(URL, {"token": [ended, waiting]})

    assert response["Retry-After"] == "1"
    assert "no-store" in response["Cache-Control"]
    assert "Retry-After" not in client.post(URL, {"token": [ended]})


TO_HISTORY = "UPDATE tenantqueue_job SET final = true, state = 'success', finished_at = now()"
TO_HOT = "UPDATE tenantqueue_job SET final = false, state = 'ready', finished_at = NULL"


@pytest.mark.parametrize(
    ("state", "move"), [(State.READY, TO_HISTORY), (State.ERROR, TO_HOT)], ids=["end", "retry"]
)
def test_job_is_found_when_it_moves_between_the_two_looks(state: State, move: str) -> None:
    job = make_job(state=state, worker_id=None)
    other = make_job(state=State.SUCCESS)  # there is a second look
    moved: list[bool] = []

    def move_after_the_first(execute: Any, *args: Any) -> Any:
        result = execute(*args)
        if not moved:
            moved.append(True)
            with connection.cursor() as cursor:
                cursor.execute(f"{move} WHERE id = %s", [job.pk])
        return result

    with connection.execute_wrapper(move_after_the_first):
        found = Job.objects.find_many([job.pk, other.pk])

    assert sorted(found) == [job.pk, other.pk]
