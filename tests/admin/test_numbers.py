"""Ids and process ids are shown and found as they are, whatever the locale does to numbers."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_tenantqueue.models import Change, ConcurrentJobMonitor, Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.states import State
from tests.factories import make_job, make_jobs, make_queue, make_worker
from tests.operations.monitors import start

from .conftest import text_of, url_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _separators(settings: Any) -> None:
    settings.USE_THOUSAND_SEPARATOR = True


def _restart(model: type[Any], at: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [model._meta.db_table, at]
        )


@pytest.fixture
def large_ids() -> None:
    _restart(Job, 17_530_000)
    _restart(TenantQueue, 2_345_000)


def _seen(response: HttpResponse) -> str:
    return response.content.decode()


@pytest.mark.usefixtures("large_ids")
def test_ids_have_no_separators_on_the_pages_of_jobs(admin_client: Client) -> None:
    worker = make_worker(pid=34_567, supervisor_pid=45_678)
    queue = make_queue("acme")
    job = make_job(queue, state=State.RUNNING, worker_id=worker.pk)
    orphan = make_job(7_654_321, state=State.ERROR, worker_id=8_765_432)
    pages = [
        url_of("job", "changelist"),
        url_of("job", "change", job.pk),
        url_of("job", "change", orphan.pk),
        url_of("worker", "changelist"),
        url_of("worker", "change", worker.pk),
        url_of("tenantqueue", "changelist"),
        url_of("tenantqueue", "change", queue.pk),
    ]

    content = "".join(_seen(admin_client.get(page)) for page in pages)

    numbers = (job.pk, orphan.pk, queue.pk, 34_567, 45_678, 7_654_321, 8_765_432)
    for number in numbers:
        assert str(number) in content
        assert f"{number:,}" not in content
    assert f"?queue_id={queue.pk}" in content


@pytest.mark.usefixtures("large_ids")
def test_first_page_posts_numbers_without_separators(admin_client: Client) -> None:
    queue = make_queue("acme", num_slots=2_000)
    make_job(queue)

    page = _seen(admin_client.get(reverse("admin:app_list", args=["tenantqueue"])))

    posted = dict(re.findall(r'name="(queue|initial-[a-z_]+|num_slots)" value="([^"]*)"', page))
    assert posted == {
        "queue": str(queue.pk),
        "num_slots": "2000",
        "initial-num_slots": "2000",
        "initial-weight": "1",
        "initial-paused": "False",
    }


@pytest.mark.usefixtures("large_ids")
def test_history_links_older_changes_without_separators(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_tenantqueue.admin.base.HISTORY_PAGE", 1)
    _restart(Change, 4_567_000)
    queue = make_queue("acme")
    for weight in (2, 3):
        control.tune_queue(queue.pk, weight=weight)

    page = _seen(admin_client.get(url_of("tenantqueue", "history", queue.pk)))

    assert f'"?before={Change.objects.latest("pk").pk}"' in page


@pytest.mark.usefixtures("large_ids")
def test_ids_have_no_separators_in_questions(admin_client: Client) -> None:
    ids = make_jobs(make_queue(), 2)
    url = url_of("job", "changelist")

    question = admin_client.post(
        url, {"action": "cancel_selected", "_selected_action": ids, "index": "0"}
    )
    form = admin_client.post(
        url, {"action": "change_priority_selected", "_selected_action": ids, "index": "0"}
    )

    assert form_values(question, "_apply")["_selected_action"] == [str(i) for i in ids]
    assert form_values(form, "priority")["_selected_action"] == [str(i) for i in ids]
    assert "2 jobs: cancelled." in text_of(say_yes(admin_client, question))


def test_number_of_a_question_with_a_separator_is_understood(admin_client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenantqueue_tenantqueue (tenant, name, weight, paused, retired, "
            "created_at, burst) SELECT 't' || n, 'q', 1, false, false, now(), 1 "
            "FROM generate_series(1, 1200) n"
        )
    first = TenantQueue.objects.first()
    assert first is not None
    data = {"action": "pause_selected", "_selected_action": first.pk, "select_across": "1"}

    question = admin_client.post(url_of("tenantqueue", "changelist"), {**data, "index": "0"})

    assert "Pause 1,200 tenant queues?" in text_of(question)
    say_yes(admin_client, question)
    assert TenantQueue.objects.filter(paused=True).count() == 1200


def _found(client: Client, model: str, query: str) -> list[int]:
    response = client.get(url_of(model, "changelist"), {"q": query})
    return [row.pk for row in response.context["cl"].result_list]


@pytest.mark.parametrize("form", ["{}", "#{}", " #{} "])
def test_job_is_found_by_the_number_that_pages_show(admin_client: Client, form: str) -> None:
    job, _other = make_job(), make_job()

    assert _found(admin_client, "job", form.format(job.pk)) == [job.pk]


def test_search_for_what_is_no_number_finds_nothing(admin_client: Client) -> None:
    make_job()

    for query in ("#", "#abc", "#" + "9" * 5000, "##1"):
        assert _found(admin_client, "job", query) == []
        assert _found(admin_client, "concurrentjobmonitor", query) == []


def test_monitor_is_found_by_its_number_or_a_part_of_its_name(admin_client: Client) -> None:
    monitor, other = start(), start()
    ConcurrentJobMonitor.objects.filter(pk=other.pk).update(name=f"again #{monitor.pk}")

    assert _found(admin_client, "concurrentjobmonitor", f"#{other.pk}") == [other.pk]
    assert _found(admin_client, "concurrentjobmonitor", f"#{monitor.pk}") == [other.pk, monitor.pk]


def test_names_of_tasks_are_suggested(admin_client: Client) -> None:
    make_job(task='app.Model.<method>"')

    content = _seen(admin_client.get(url_of("job", "changelist"), {"state": "ready"}))

    assert '<datalist id="tq-task-names">' in content
    assert content.count('list="tq-task-names"') == 2  # the search and the filter
    assert '<option value="tests.testapp.tasks.noop">' in content
    assert '<option value="app.Model.&lt;method&gt;&quot;">' in content
    assert '<input type="hidden" name="state" value="ready">' in content
    assert "the full name of a task" in content


@pytest.mark.parametrize(
    ("count", "said"), [(1, "1 tenant queue changed"), (2, "2 tenant queues changed")]
)
def test_one_row_is_not_said_in_the_plural(admin_client: Client, count: int, said: str) -> None:
    ids = [make_queue(paused=True).pk for _ in range(count)]
    data = {"action": "resume_selected", "_selected_action": ids, "index": "0"}

    assert said in text_of(
        admin_client.post(url_of("tenantqueue", "changelist"), data, follow=True)
    )
    again = text_of(admin_client.post(url_of("tenantqueue", "changelist"), data, follow=True))
    assert f"; {count} unchanged" in again


def test_search_keeps_the_place_out_of_the_form(admin_client: Client) -> None:
    later = timezone.now() + timedelta(hours=1)
    make_job(state=State.SCHEDULED, run_at=later)

    content = _seen(admin_client.get(url_of("job", "changelist"), {"before": "99", "trail": "1"}))

    assert 'name="before"' not in content
    assert 'name="trail"' not in content
