"""The list of workers, and the page of one."""

from __future__ import annotations

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from django_tenantqueue.models import Worker
from django_tenantqueue.states import State
from django_tenantqueue.status.display_limits import PAGE
from tests.factories import made_changes, make_job, make_jobs, make_queue, make_worker

from .conftest import text_of, url_of
from .forms import say_yes

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/worker/"


def page_of(worker: Worker) -> str:
    return url_of("worker", "change", worker.pk)


def order(client: Client, action: str, *workers: Worker) -> str:
    """Tick workers, run an action, and return the page that follows as text."""
    ticked = [worker.pk for worker in workers]
    data = {"action": action, "_selected_action": ticked, "index": "0"}
    return text_of(say_yes(client, client.post(LIST, data)))


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "working"),
        ({"sleeping_until": timezone.now() + timedelta(days=1)}, "idle"),
        ({"draining": True}, "draining"),
        ({"draining": True, "stopping": True}, "stopping"),
        ({"heartbeat_at": timedelta(minutes=5)}, "silent 5 min ago"),
    ],
)
def test_list_tells_how_a_worker_is(
    admin_client: Client, columns: dict[str, Any], state: str
) -> None:
    if "heartbeat_at" in columns:
        columns = {"heartbeat_at": timezone.now() - columns["heartbeat_at"]}
    make_worker(**columns)

    text = text_of(admin_client.get(LIST))

    assert f" {state} " in text
    assert "3 h 5 min" in text
    assert "all queues" in text
    assert "of 4 + 100 async" in text


@pytest.mark.parametrize("address", ["list", "page"])
def test_sleeping_worker_works_while_it_holds_a_job_and_idles_in_grey(
    admin_client: Client, address: str
) -> None:
    asleep = timezone.now() + timedelta(days=1)
    worker = make_worker(sleeping_until=asleep, jobs_running=2)
    url = LIST if address == "list" else page_of(worker)
    idle = '<span class="tq-state tq-state-held">idle</span>'
    assert idle in admin_client.get(url).content.decode()

    make_job(state=State.RUNNING, worker_id=worker.pk)

    content = admin_client.get(url).content.decode()
    assert '<span class="tq-state tq-state-running">working</span>' in content
    assert idle not in content


def test_list_tells_what_a_worker_takes(admin_client: Client) -> None:
    make_worker(queues=["reports"], exclude_queues=["slow"], tenants=["acme", "zeta"])

    text = text_of(admin_client.get(LIST))

    assert "queues: reports; but not: slow; tenants: acme, zeta" in text


def test_list_tells_how_much_a_worker_does(admin_client: Client) -> None:
    worker = make_worker(
        jobs_running=9, rss_bytes=150 * 1024 * 1024, claims_per_second=0.34, jobs_per_second=1234.5
    )
    make_jobs(make_queue(), 3, state=State.RUNNING, worker_id=worker.pk)
    make_jobs(make_queue(), 2, state=State.RUNNING, worker_id=worker.pk + 1)

    text = text_of(admin_client.get(LIST))

    assert "3 of 4 + 100 async 150 MB 0.3 1,234 all queues" in text


def test_list_shows_the_beginning_of_the_last_error(admin_client: Client) -> None:
    failed_at = timezone.now() - timedelta(minutes=7)
    make_worker(last_error="<b>lost</b>\n" + "x" * 500, last_error_at=failed_at)

    content = admin_client.get(LIST).content.decode()

    assert "&lt;b&gt;lost&lt;/b&gt; xxx" in content
    assert "x…</span>" in content
    assert "7 min ago" in content


@pytest.mark.parametrize("column", range(1, 10))
@pytest.mark.parametrize("sign", ["", "-"])
def test_list_is_sorted_by_any_column(admin_client: Client, column: int, sign: str) -> None:
    make_worker(name="plain")
    make_worker(name="busy", rss_bytes=1, last_error="no", last_error_at=timezone.now())

    response = admin_client.get(LIST, {"o": f"{sign}{column}"})

    assert {worker.name for worker in response.context["cl"].result_list} == {"plain", "busy"}


def test_silent_and_leaving_workers_come_first_when_sorted_by_state(admin_client: Client) -> None:
    make_worker(name="working")
    make_worker(name="draining", draining=True)
    make_worker(name="stopping", stopping=True)
    make_worker(name="silent", heartbeat_at=timezone.now() - timedelta(minutes=5))

    response = admin_client.get(LIST, {"o": "2"})

    names = [worker.name for worker in response.context["cl"].result_list]
    assert names == ["silent", "stopping", "draining", "working"]


def test_list_of_many_workers_takes_no_more_statements(
    admin_client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    Worker.objects.bulk_create(_copies(make_worker(), 1000))

    # session, user, number of workers, one page of them; four around the statement of their jobs
    with django_assert_num_queries(8):
        response = admin_client.get(LIST)

    assert response.context["cl"].result_count == 1001


def _copies(worker: Worker, count: int) -> list[Worker]:
    values = {f.name: getattr(worker, f.name) for f in Worker._meta.fields if f.name != "id"}
    return [Worker(**values) for _ in range(count)]


def test_drain_sets_only_that_column(admin_client: Client) -> None:
    worker, other = make_worker(), make_worker(name="web-2:100", draining=True)

    text = order(admin_client, "drain_selected", worker, other)

    assert "1 worker drains. 1 unchanged: asked before" in text
    assert Worker.objects.filter(draining=True, stopping=False).count() == 2
    assert made_changes() == [("drain", {"draining": False}, {"draining": True})]


def test_stop_sets_only_that_column(admin_client: Client) -> None:
    worker, other = make_worker(), make_worker(name="web-2:100", stopping=True)

    text = order(admin_client, "stop_selected", worker, other)

    assert "1 worker stops: jobs still running after the shutdown timeout start again" in text
    assert "1 unchanged: asked before" in text
    assert Worker.objects.filter(stopping=True, draining=False).count() == 2
    assert made_changes() == [("stop", {"stopping": False}, {"stopping": True})]


def test_page_of_a_worker_has_nothing_to_save(admin_client: Client) -> None:
    content = admin_client.get(page_of(make_worker())).content.decode()

    assert "web-1:100" in content
    assert 'name="_save"' not in content
    assert 'name="draining"' not in content


def test_page_lists_the_jobs_that_the_worker_runs(admin_client: Client) -> None:
    worker = make_worker()
    job = make_job(
        make_queue("acme", "reports"),
        state=State.RUNNING,
        task="reports.build",
        worker_id=worker.pk,
        attempt=2,
        started_at=timezone.now() - timedelta(minutes=3),
    )
    foreign = make_job(state=State.RUNNING, worker_id=worker.pk + 1)

    response = admin_client.get(page_of(worker))

    assert f"#{job.pk} reports. build acme / reports running 2 / 5 3 min" in text_of(response)
    assert url_of("job", "change", job.pk) in response.content.decode()
    assert f"#{foreign.pk} " not in text_of(response)


def test_page_says_how_many_more_jobs_there_are(admin_client: Client) -> None:
    worker = make_worker()
    make_jobs(make_queue(), PAGE + 7, state=State.RUNNING, worker_id=worker.pk)

    response = admin_client.get(page_of(worker))

    assert "and 7 more" in text_of(response)
    assert len(response.context["jobs"]) == PAGE


def test_page_takes_no_statement_for_each_job(
    admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    worker = make_worker()
    make_jobs(make_queue(), 40, state=State.RUNNING, worker_id=worker.pk)

    with django_assert_max_num_queries(15):
        response = admin_client.get(page_of(worker))

    assert len(response.context["jobs"]) == 40


def test_page_of_an_idle_worker_says_that_nothing_runs(admin_client: Client) -> None:
    assert "It runs no job at the moment." in text_of(admin_client.get(page_of(make_worker())))


def test_page_shows_the_whole_last_error(admin_client: Client) -> None:
    error = "x" * 500
    worker = make_worker(last_error=error, last_error_at=timezone.now())

    assert f"<pre>{error}</pre>" in admin_client.get(page_of(worker)).content.decode()


def test_page_of_a_worker_that_has_gone_leads_to_the_list(admin_client: Client) -> None:
    worker = make_worker()
    address = page_of(worker)
    worker.delete()

    response = admin_client.get(address, follow=True)

    assert "Perhaps it was deleted?" in text_of(response)


def test_empty_list_says_what_to_do(admin_client: Client) -> None:
    assert "Start it with python manage.py runworker" in text_of(admin_client.get(LIST))


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (0.4, "agrees with the database server's"),
        (61.26, "61.3 s ahead of the database server's"),
        (-2.0, "2.0 s behind the database server's"),
    ],
)
def test_page_tells_how_far_the_clock_is_off(admin_client: Client, ahead: float, told: str) -> None:
    worker = make_worker(clock_ahead_seconds=ahead)

    assert f"Clock: {told}" in unescape(text_of(admin_client.get(page_of(worker))))


def test_workers_of_a_host_or_a_version_are_found_and_drained(
    admin_client: Client,
) -> None:
    old = make_worker(host="web-1", version="1.0")
    make_worker(host="web-1", version="2.0")
    make_worker(host="web-2", version="2.0")
    url = url_of("worker", "changelist")

    listed = admin_client.get(url, {"q": "web-1 1.0"})

    assert [row.pk for row in listed.context["cl"].result_list] == [old.pk]
