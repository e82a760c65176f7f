"""The pages of failures: groups by task and class of error, and what is done with all of one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from django_tenantqueue.admin import failures
from django_tenantqueue.models import Change, Job
from django_tenantqueue.queries.figures import ALL, Counts, add_figures, with_totals
from tests.admin.conftest import text_of, url_of
from tests.admin.forms import say_yes
from tests.factories import make_job, make_jobs, make_queue, state_of

pytestmark = pytest.mark.django_db
HOSTILE = '"><script>alert(1)</script>'
TASK, ERROR = "app.tasks.send", "app.errors.Refused"


def count(queue, failed=0, retried=0, *, task=TASK, error=ERROR, job_id=None):
    """Add failures to the figures as workers do."""
    counts = Counts(failed=failed, retried=retried)
    of_error = Counts(failed=failed, retried=retried, last_job_id=job_id)
    add_figures(
        "default",
        with_totals({(queue.pk, task, ""): counts, (queue.pk, task, error): of_error}),
    )


def make_failed(queue, count=1, *, task=TASK, error=ERROR, message="it was refused", **columns):
    errors = [{"class": error, "message": message, "attempt": 1, "at": "2026-01-01T00:00:00Z"}]
    columns = {"task": task, "errors": errors, "state": "error", **columns}
    return make_jobs(queue, count, **columns)


def listed(client, **params):
    return client.get(reverse("admin:tenantqueue_failures"), params)


def group_url(task=TASK, error=ERROR, **params):
    query = {"task": task, "error": error, **params}
    return reverse("admin:tenantqueue_failure_group", query=query)


def press(client, button, **params):
    return client.post(group_url(**params), {button: "1"})


def test_groups_are_listed_with_counts_queues_and_example_the_most_frequent_first(admin_client):
    queue = make_queue("acme", "mail")
    (job_id,) = make_failed(queue, message="first line\nsecond line")
    count(queue, failed=2, retried=3, job_id=job_id)
    count(queue, failed=9, task="app.tasks.other", error="KeyError")

    response = listed(admin_client)

    text = text_of(response)
    assert text.index("KeyError") < text.index("Refused")
    assert "acme / mail" in text
    assert f"#{job_id} error first line" in text
    assert url_of("job", "change", job_id) in response.content.decode()
    assert f"{group_url().split('?')[0]}?hours=1&amp;task={TASK}" in response.content.decode()


def test_up_to_five_queues_are_named_with_the_number_of_the_others(admin_client):
    for n in range(8):
        count(make_queue(f"tenant-{n}"), failed=10 + n)

    text = text_of(listed(admin_client))

    assert "tenant-7 / default tenant-6 / default" in text
    assert "tenant-2" not in text
    assert "and 3 more" in text


def test_number_of_other_queues_is_a_lower_bound_when_not_all_were_read(admin_client, monkeypatch):
    monkeypatch.setattr("django_tenantqueue.status.failures.READ_OF_GROUP", 7)
    for n in range(9):
        count(make_queue(f"tenant-{n}"), failed=1)

    assert "and at least" in text_of(listed(admin_client))


def test_page_says_how_far_it_has_read_when_there_are_very_many_groups(admin_client, monkeypatch):
    monkeypatch.setattr("django_tenantqueue.status.failures.READ", 3)
    queue = make_queue()
    for n in range(5):
        count(queue, failed=1, error=f"Error{n}")

    assert "There are very many failures." in text_of(listed(admin_client))


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"task": TASK}, {"Mine"}),
        ({"tenant": "acme"}, {"Mine"}),
        ({"queue": "mail"}, {"Mine"}),
        ({"tenant": "other", "queue": "default"}, {"Theirs"}),
        ({"tenant": "unknown"}, set()),
        ({"task": "unknown"}, set()),
        ({}, {"Mine", "Theirs"}),
    ],
)
def test_groups_are_filtered_by_task_tenant_and_queue(admin_client, params, shown):
    count(make_queue("acme", "mail"), failed=1, error="Mine")
    count(make_queue("other"), failed=1, task="app.tasks.other", error="Theirs")

    text = text_of(listed(admin_client, **params))

    assert {name for name in ("Mine", "Theirs") if name in text} == shown


def test_counts_are_those_of_the_queue_when_one_is_asked_for(admin_client):
    count(make_queue("acme"), failed=123)
    count(make_queue("other"), failed=456)

    text = text_of(listed(admin_client, tenant="acme"))

    assert "123" in text
    assert "579" not in text


def test_group_shows_its_newest_failed_jobs_and_how_many_wait(admin_client):
    queue = make_queue("acme")
    (old,) = make_failed(queue, finished_at=timezone.now() - timedelta(minutes=9))
    (new,) = make_failed(queue, message="newest line\nmore")
    make_failed(queue, state="scheduled", attempt=1)
    make_failed(queue, error="Other")
    count(queue, failed=2, retried=1, job_id=new)

    text = text_of(admin_client.get(group_url()))

    assert text.index(f"#{new}") < text.index(f"#{old}")
    assert "newest line" in text
    assert "Retry all (2)…" in text
    assert "Cancel all that wait (1)…" in text


def test_group_is_shown_when_figures_know_nothing_of_it(admin_client):
    (job_id,) = make_failed(make_queue())

    text = text_of(admin_client.get(group_url()))

    assert "No failures in this range." in text
    assert f"#{job_id}" in text


def test_group_is_retried_after_the_question_with_one_entry(admin_client):
    ids = make_failed(make_queue(), 3)

    question = press(admin_client, "_retry", hours=24)
    assert "Retry 3 jobs?" in text_of(question)
    assert f"ended in error with {ERROR} (range: 24 hours)" in text_of(question)
    assert {state_of(i) for i in ids} == {"error"}

    response = say_yes(admin_client, question)

    assert {state_of(i) for i in ids} == {"ready"}
    assert "3 jobs: made ready again." in text_of(response)
    entry = Change.objects.get()
    assert (entry.actor, entry.source, entry.object_count) == ("admin", "admin", 3)


def test_jobs_that_were_retried_are_not_offered_for_cancelling(admin_client):
    make_failed(make_queue(), 3)

    say_yes(admin_client, press(admin_client, "_retry"))

    text = text_of(admin_client.get(group_url()))
    assert "Retry all (0)" in text
    assert "Cancel all that wait (0)" in text
    assert set(Job.objects.values_list("state", flat=True)) == {"ready"}


def test_waiting_jobs_are_cancelled_after_the_question(admin_client):
    queue = make_queue()
    waiting = make_failed(queue, 2, state="scheduled", attempt=1)
    (failed,) = make_failed(queue)

    question = press(admin_client, "_cancel")
    assert "Cancel 2 jobs?" in text_of(question)
    response = say_yes(admin_client, question)

    assert {state_of(i) for i in waiting} == {"cancelled"}
    assert state_of(failed) == "error"
    assert "2 jobs: cancelled." in text_of(response)


def test_only_jobs_of_the_filtered_queues_are_retried(admin_client):
    mine, other = make_failed(make_queue("acme")), make_failed(make_queue("other"))

    question = press(admin_client, "_retry", tenant="acme")
    assert "Jobs of other queues than acme are left" in text_of(question)
    say_yes(admin_client, question)

    assert (state_of(mine[0]), state_of(other[0])) == ("ready", "error")


def test_jobs_that_ended_before_the_range_are_left(admin_client):
    (old,) = make_failed(make_queue(), finished_at=timezone.now() - timedelta(hours=5))
    (new,) = make_failed(make_queue())

    say_yes(admin_client, press(admin_client, "_retry", hours=1))

    assert (state_of(old), state_of(new)) == ("error", "ready")


def test_question_and_answer_say_that_there_are_more_jobs_than_one_call_takes(
    admin_client, monkeypatch
):
    monkeypatch.setattr(failures, "MOST", 2)
    make_failed(make_queue(), 3)

    question = press(admin_client, "_retry")
    assert "These are the newest 2 jobs of the group." in text_of(question)

    assert "The group has more jobs. Repeat the action" in text_of(say_yes(admin_client, question))


def test_question_says_how_far_it_has_looked_for_jobs_of_the_filter(admin_client, monkeypatch):
    monkeypatch.setattr("django_tenantqueue.status.failures.BATCH", 2)
    monkeypatch.setattr(failures, "WALKED", 4)
    mine, other = make_queue("acme"), make_queue("other")
    make_failed(mine, finished_at=timezone.now() - timedelta(minutes=9))
    make_failed(other, 4, finished_at=timezone.now() - timedelta(minutes=5))
    make_failed(mine, finished_at=timezone.now() - timedelta(minutes=1))

    text = text_of(press(admin_client, "_retry", tenant="acme"))

    assert "Retry 1 job?" in text
    assert "Only the newest 4 jobs of the group were searched." in text


def test_nothing_happens_when_the_group_has_become_empty(admin_client):
    response = admin_client.post(group_url(), {"_retry": "1"}, follow=True)

    assert "0 jobs: made ready again." in text_of(response)
    assert not Change.objects.exists()


def test_jobs_are_not_touched_by_a_button_that_does_not_exist(admin_client):
    (job_id,) = make_failed(make_queue())

    assert press(admin_client, "_delete").status_code == 302
    assert state_of(job_id) == "error"


@pytest.mark.parametrize("params", [{"task": ""}, {"error": ""}])
def test_list_is_shown_when_the_address_names_no_group(admin_client, params):
    response = admin_client.get(group_url(**params))

    assert response["Location"].startswith(reverse("admin:tenantqueue_failures"))


@pytest.mark.parametrize(
    "text", [HOSTILE, "a\x00b", "{% now %}", "%s {0}", "x" * 3000, "\u202ea", " a\n "]
)
def test_hostile_names_are_escaped_on_every_page(admin_client, text):
    queue = make_queue(HOSTILE, HOSTILE)
    stored = text.replace("\x00", "\\x00")
    (job_id,) = make_failed(queue, task=stored[:2000], error=stored, message=stored)
    count(queue, failed=99, task=stored[:300], error=stored[:300], job_id=job_id)

    pages = [
        listed(admin_client),
        listed(admin_client, task=text, tenant=text, queue=text),
        admin_client.get(group_url(text[:2000], text)),
        press(admin_client, "_retry", task=text[:2000], error=text),
        admin_client.get(reverse("admin:app_list", args=["tenantqueue"])),
    ]
    say_yes(admin_client, pages[3])
    pages.append(admin_client.get(url_of("change", "changelist")))

    assert [page.status_code for page in pages] == [200] * len(pages)
    assert not any("<script>alert" in page.content.decode() for page in pages)
    assert state_of(job_id) == "ready"


def test_viewer_sees_the_pages_and_cannot_act(operator):
    queue = make_queue()
    (job_id,) = make_failed(queue)
    count(queue, failed=1, job_id=job_id)
    client = operator("view_job")

    content = listed(client).content.decode() + client.get(group_url()).content.decode()

    assert "app.errors." in content
    assert "Retry all" not in content
    assert "Cancel all" not in content
    assert press(client, "_retry").status_code == 403
    assert press(client, "_cancel").status_code == 403
    assert client.post(group_url(), {"_retry": "1", "_apply": "1"}).status_code == 403
    assert state_of(job_id) == "error"


def test_pages_are_refused_without_permission_to_view_jobs(operator):
    client = operator("view_tenantqueue")

    assert listed(client).status_code == 403
    assert client.get(group_url()).status_code == 403
    assert press(client, "_retry").status_code == 403


def test_pages_take_no_other_requests(admin_client):
    assert admin_client.post(reverse("admin:tenantqueue_failures")).status_code == 405
    assert admin_client.delete(group_url()).status_code == 405


def test_number_of_statements_does_not_grow_with_the_groups(
    admin_client, django_assert_max_num_queries
):
    for n in range(60):
        queue = make_queue()
        (job_id,) = make_failed(queue, error=f"Error{n}")
        count(queue, failed=1, error=f"Error{n}", job_id=job_id)

    with django_assert_max_num_queries(10):
        assert "The 50 groups with most failures" in text_of(listed(admin_client))
    with django_assert_max_num_queries(25):
        admin_client.get(group_url(error="Error3"))
    with django_assert_max_num_queries(25):
        admin_client.get(group_url(error="Error3", tenant="tenant-1"))


@override_settings(TENANTQUEUE={"FIGURES": False})
def test_page_says_so_when_workers_keep_no_figures(admin_client):
    assert "is off: workers store no metrics" in text_of(listed(admin_client))


def test_list_of_jobs_links_to_failures(operator):
    content = operator("view_job").get(url_of("job", "changelist")).content.decode()

    assert reverse("admin:tenantqueue_failures") in content


def test_first_page_links_to_failures_from_tile_task_and_problem(admin_client, operator):
    queue = make_queue()
    make_job(queue)
    count(queue, failed=6, retried=6)

    def home(client):
        return client.get(reverse("admin:app_list", args=["tenantqueue"])).content.decode()

    content = home(admin_client)

    url = reverse("admin:tenantqueue_failures")
    assert f'<a href="{url}?hours=1">Failed runs</a>' in content
    assert f'<a class="tq-late" href="{url}?hours=1&amp;task={TASK}">100.0 %</a>' in content
    told = f"12 of 12 runs of {TASK} failed in the last hour"
    assert f'<a href="{url}?task={TASK}">{told}</a>' in content
    assert url not in home(operator("view_tenantqueue"))


@pytest.mark.parametrize(("failed", "succeeded"), [(9, 0), (10, 11)])
def test_task_is_no_problem_when_few_runs_failed_or_most_succeeded(admin_client, failed, succeeded):
    add_figures("default", {(ALL, TASK, ""): Counts(failed=failed, succeeded=succeeded)})

    content = admin_client.get(reverse("admin:app_list", args=["tenantqueue"])).content.decode()

    assert "failed in the last hour" not in content
