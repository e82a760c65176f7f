"""The first page of the app in the admin."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from django_tenantqueue.models import Change, TaskControl, TenantQueue
from django_tenantqueue.queries.figures import ALL, Counts, add_figures
from django_tenantqueue.states import State
from tests.admin.conftest import text_of, url_of
from tests.factories import make_job, make_queue, make_worker

pytestmark = pytest.mark.django_db
HOSTILE = '"><script>alert(1)</script>'


def home(client, **params):
    return client.get(reverse("admin:app_list", args=["tenantqueue"]), params)


def save(client, queue, /, **values):
    shown = {"num_slots": queue.num_slots, "weight": queue.weight}
    posted = {"queue": queue.pk, **shown, **{f"initial-{n}": v for n, v in shown.items()}, **values}
    posted = {name: value for name, value in posted.items() if value is not None}
    return client.post(url_of("tenantqueue", "changelist") + "overview/", posted, follow=True)


def test_page_shows_problems_fleet_queues_and_tasks(admin_client):
    queue = make_queue("acme", "reports", paused=True)
    make_job(queue)
    add_figures("default", {(ALL, "app.tasks.report", ""): Counts(succeeded=3, failed=1)})

    response = home(admin_client)

    text = text_of(response)
    assert "No worker runs: start one with manage.py runworker; ready jobs: 1" in text
    assert "Ready jobs in paused queues, or in queues without slots: acme/reports" in text
    assert "acme / reports" in text
    assert "25.0 %" in text
    assert url_of("worker", "changelist") in response.content.decode()


def test_late_queue_is_a_problem_with_a_link_to_the_late_ones(admin_client):
    hour = timezone.now() - timedelta(hours=1)
    for tenant, columns in (("acme", {"num_slots": 1}), ("stopped", {"paused": True})):
        make_job(make_queue(tenant, "reports", **columns), created_at=hour, run_at=hour)
    make_job(TenantQueue.objects.get(tenant="acme"), state=State.RUNNING)
    make_job(make_queue("fresh", "reports"))

    response = home(admin_client)

    assert "Ready jobs have waited for over a minute: acme/reports (full)" in text_of(response)
    link = f'{url_of("tenantqueue", "changelist")}?trouble=late">Ready jobs have waited'
    assert link in response.content.decode()


def test_page_names_tasks_whose_jobs_wait_for_their_rates(admin_client):
    rates = {"app.slow": 0.01, "app.slower": 0.001, "app.soon": 5, "app.free": 5, "app.any": None}
    for name, rate in rates.items():
        TaskControl.objects.create(task=name, max_per_second=rate)
    for name in ("app.slow", "app.slow", "app.slower", "app.soon", "app.any"):
        make_job(state=State.HELD, held_by="task", task=name)

    response = home(admin_client)

    slower = "Task app.slower may start 0.001 jobs in a second, 1 wait Mute…"
    assert f"{slower} Task app.slow may start 0.01 jobs in a second, 2 wait" in text_of(response)
    assert text_of(response).count("jobs in a second") == 2
    assert f'{url_of("taskcontrol", "changelist")}">Task app.slow' in response.content.decode()


def test_problem_leads_to_the_rows_in_trouble(admin_client):
    make_worker(queues=["others"])
    make_job(make_queue("acme", "reports"))

    page = home(admin_client).content.decode()

    link = f'{url_of("tenantqueue", "changelist")}?trouble=no-worker">Ready jobs that no worker'
    assert link in page


def test_page_says_that_all_is_well_when_nothing_is_there(admin_client, monkeypatch):
    monkeypatch.setattr("django_tenantqueue.status.overview.read_report", _report_without_problems)

    text = text_of(home(admin_client))

    assert "No problems found." in text
    assert "No queue has ready or running jobs." in text
    assert "No runs in this range." in text


def _report_without_problems(using, **asked):
    from dataclasses import replace

    from django_tenantqueue.status.fleet_report import read_report

    return replace(read_report(using, **asked), problems=[])


@pytest.mark.parametrize(
    ("hours", "chosen"), [("24", "24 hours"), ("5", "1 hour"), ("x", "1 hour")]
)
def test_range_is_chosen_by_the_address(admin_client, hours, chosen):
    content = home(admin_client, hours=hours).content.decode()

    assert re.findall(r'aria-current="true">(.*?)<', content) == [chosen]


def test_content_alone_is_returned_when_the_page_refreshes_itself(admin_client):
    response = admin_client.get(url_of("tenantqueue", "changelist") + "overview/")

    assert response.content.decode().strip().startswith('<div id="tq-home"')


def test_hostile_names_are_escaped(admin_client):
    make_job(make_queue(HOSTILE, HOSTILE))
    add_figures("default", {(ALL, HOSTILE, ""): Counts(succeeded=1)})

    assert "<script>alert" not in home(admin_client).content.decode()


def test_slots_weight_and_pause_are_saved_when_they_were_changed(admin_client):
    queue = make_queue("acme", num_slots=2)

    response = save(admin_client, queue, num_slots=7, weight=3, paused="on")

    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight, queue.paused) == (7, 3, True)
    assert "2 → 7" in text_of(response)
    entry = Change.objects.get()
    assert (entry.actor, entry.source, entry.after["num_slots"]) == ("admin", "admin", 7)


def test_limit_is_removed_when_the_field_is_empty(admin_client):
    queue = make_queue("acme", num_slots=2)

    save(admin_client, queue, num_slots="")

    queue.refresh_from_db()
    assert queue.num_slots is None


def test_nothing_is_saved_when_another_operator_changed_the_column(admin_client):
    queue = make_queue("acme", num_slots=2)
    TenantQueue.objects.filter(pk=queue.pk).update(num_slots=50)

    response = save(admin_client, queue, num_slots=7)

    queue.refresh_from_db()
    assert queue.num_slots == 50
    assert "was changed meanwhile. Nothing was saved." in text_of(response)


def test_other_columns_keep_their_new_values_when_one_is_saved(admin_client):
    queue = make_queue("acme", num_slots=2, weight=1)
    TenantQueue.objects.filter(pk=queue.pk).update(weight=9)

    save(admin_client, queue, num_slots=7)

    queue.refresh_from_db()
    assert (queue.num_slots, queue.weight) == (7, 9)


@pytest.mark.parametrize("number", ["-1", "many", "9" * 30])
def test_bad_number_is_refused_with_a_message(admin_client, number):
    queue = make_queue("acme", num_slots=2)

    response = save(admin_client, queue, num_slots=number)

    queue.refresh_from_db()
    assert queue.num_slots == 2
    assert "cme / default:" in text_of(response)


@pytest.mark.parametrize("number", ["0", "x", "9" * 30])
def test_operator_is_told_when_the_queue_is_gone(admin_client, number):
    response = save(admin_client, make_queue("acme"), queue=number)

    assert "This queue does not exist any more." in text_of(response)


def test_page_is_hidden_without_permission(operator):
    client = operator("view_job")

    assert "tq-home" not in home(client).content.decode()
    assert client.get(url_of("tenantqueue", "changelist") + "overview/").status_code == 403


def test_viewer_cannot_change_a_queue(operator):
    queue = make_queue("acme", num_slots=2)
    make_job(queue)
    client = operator("view_tenantqueue")

    assert 'name="num_slots"' not in home(client).content.decode()
    assert save(client, queue, num_slots=7).status_code == 403
    queue.refresh_from_db()
    assert queue.num_slots == 2


def test_tasks_and_links_to_jobs_are_hidden_from_those_who_may_not_view_jobs(operator):
    make_job(make_queue("acme"))
    add_figures("default", {(ALL, "secret.task", ""): Counts(succeeded=1)})

    content = home(operator("view_tenantqueue")).content.decode()

    assert "secret.task" not in content
    assert url_of("job", "changelist") not in content


def test_slots_taken_are_those_of_the_queues_whose_slots_are_counted(admin_client):
    limited = make_queue("acme", "limited", num_slots=3)
    unlimited = make_queue("acme", "unlimited", num_slots=None)
    paused = make_queue("acme", "paused", num_slots=7, paused=True)
    for queue, jobs in ((limited, 2), (unlimited, 4), (paused, 1)):
        for _ in range(jobs):
            make_job(queue, state=State.RUNNING)

    assert "Slots taken 2 / 3" in text_of(home(admin_client))
