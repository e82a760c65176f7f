"""The parts of a job's page that the browser reads again while the job is unfinished."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_tenantqueue.states import State
from tests.factories import make_job, make_queue

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db


def test_unfinished_job_says_where_its_parts_are_read_and_a_finished_one_does_not(
    admin_client: Client,
) -> None:
    for state in State:
        job = make_job(state=state)
        address = f'data-url="{url_of("job", "live", job.pk)}"'
        for page in ("change", "live"):
            content = admin_client.get(url_of("job", page, job.pk)).content.decode()
            assert (address in content) == (state not in ("success", "error", "cancelled"))


def test_parts_are_those_of_the_page_without_the_arguments(admin_client: Client) -> None:
    job = make_job(
        state=State.RUNNING,
        args={"args": ["the argument"]},
        progress_done=30,
        progress_total=100,
        errors=[{"attempt": 1, "class": "ValueError", "message": "first", "traceback": "T"}],
    )

    response = admin_client.get(url_of("job", "live", job.pk))
    page = admin_client.get(url_of("job", "change", job.pk)).content.decode()

    text, content = text_of(response), response.content.decode()
    for part in ("running", "Ask to stop", "Timeline", "30 of 100", "first", "attempt 1 / 5"):
        assert part in text, part
    assert "the argument" not in text
    for name in ("head", "buttons", "timeline", "progress", "form", "errors", "result", "facts"):
        assert content.count(f'data-live="{name}"') == page.count(f'data-live="{name}"') == 1
    assert response["Cache-Control"].startswith("max-age=0")


def test_parts_need_the_permission_to_view(operator: Callable[..., Client]) -> None:
    job = make_job(state=State.READY)
    address = url_of("job", "live", job.pk)

    assert operator().get(address).status_code == 403
    viewer = operator("view_job").get(address)
    assert "csrfmiddlewaretoken" not in viewer.content.decode()
    assert operator("view_job").get(url_of("job", "live", 4711)).status_code == 404


def test_refresh_takes_a_bounded_number_of_queries(admin_client: Client) -> None:
    queue = make_queue("acme", num_slots=1)
    make_job(queue, state=State.RUNNING)
    job = make_job(queue, session_key="acme/a", limit_user="acme/b")

    with CaptureQueriesContext(
        connection,
    ) as seen:
        admin_client.get(url_of("job", "live", job.pk))

    assert len(seen) <= 30
