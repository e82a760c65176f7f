"""“Select all that match” in the list of jobs: the question, and the job that answers it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from django_tenantqueue.admin import bulk_actions
from django_tenantqueue.admin.jobs import JobAdmin
from django_tenantqueue.models import Change, Job
from django_tenantqueue.states import State
from django_tenantqueue.testing import run_pending
from tests.factories import made_changes, make_job, make_jobs, make_queue, make_worker, states_of

from .conftest import text_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/job/"
ANSWER = "This job performs the action."


def ask(client: Client, action: str, **filters: str) -> HttpResponse:
    data = {"action": action, "_selected_action": ["1"], "index": "0", "select_across": "1"}
    return client.post(f"{LIST}?{urlencode(filters)}", data, follow=True)


def answered(client: Client, question: HttpResponse, **values: Any) -> HttpResponse:
    """Post the page that asks, with values for its form."""
    address = question.wsgi_request.get_full_path()  # type: ignore[attr-defined]
    return client.post(address, {**form_values(question, "_apply"), **values}, follow=True)


@pytest.fixture
def served() -> None:
    """Have a worker that takes every queue."""
    make_worker()


def test_list_offers_all_that_match_when_there_are_more_pages(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_jobs(make_queue(), 3)
    assert "Select all that match" not in text_of(admin_client.get(LIST))
    monkeypatch.setattr(JobAdmin, "list_per_page", 2)

    assert "Select all that match" in text_of(admin_client.get(LIST))
    second = admin_client.get(LIST, {"before": Job.objects.latest("pk").pk - 1})
    assert "Select all that match" in text_of(second)


def test_question_says_how_many_and_which_filters(admin_client: Client, served: None) -> None:
    queue = make_queue("<b>acme</b>", paused=True)
    make_jobs(queue, 12, state=State.ERROR)
    make_jobs(queue, 5, state=State.SUCCESS)

    question = ask(admin_client, "retry_selected", state="finished", tenant="<b>acme</b>")

    text = text_of(question)
    assert "Retry all jobs that match?" in text
    assert "Jobs that match and can be changed: 12." in text
    assert "state: finished" in text
    assert "tenant: &lt;b&gt;acme&lt;/b&gt;" in text
    assert "become ready again" in text
    assert "No worker" not in text
    assert not Job.objects.filter(queue__name="admin").exists()


def test_yes_starts_a_job_and_leads_to_its_page(admin_client: Client, admin_user: User) -> None:
    queue = make_queue("acme", paused=True)
    ids = make_jobs(queue, 12, state=State.ERROR)
    others = make_jobs(make_queue("zeta"), 2, state=State.ERROR)

    page = say_yes(admin_client, ask(admin_client, "retry_selected", state="error", tenant="acme"))

    job = Job.objects.get(queue__name="admin")
    assert page.redirect_chain == [(f"{LIST}{job.pk}/change/", 302)]  # type: ignore[attr-defined]
    assert ANSWER in text_of(page)
    assert job.created_by == str(admin_user.pk)
    assert set(states_of(ids).values()) == {State.ERROR}
    run_pending()
    assert set(states_of(ids).values()) == {State.READY}
    assert set(states_of(others).values()) == {State.ERROR}
    change = Change.objects.get()
    assert (change.actor, change.source, change.object_count) == ("admin", "admin", 12)
    shown = text_of(admin_client.get("/admin/tenantqueue/change/"))
    assert f"12 jobs job #{job.pk}: state=error, tenant=acme" in shown


def test_jobs_of_no_tenant_are_listed_and_changed(admin_client: Client) -> None:
    nobodys = make_jobs(make_queue("", paused=True), 2, state=State.ERROR)
    others = make_jobs(make_queue("acme", paused=True), 2, state=State.ERROR)

    listed = admin_client.get(LIST, {"tenant_choice": "none"}).context["cl"]
    question = ask(admin_client, "retry_selected", tenant_choice="none")
    say_yes(admin_client, question)
    run_pending()

    assert {job.pk for job in listed.result_list} == set(nobodys)
    assert "tenant: no tenant" in text_of(question)
    assert set(states_of(nobodys).values()) == {State.READY}
    assert set(states_of(others).values()) == {State.ERROR}


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"tenant_choice": "every"}, "Choose one tenant or no tenant."),
        ({"tenant_choice": "none", "tenant": "acme"}, "Remove the name, or choose one tenant."),
    ],
)
def test_choice_of_tenants_that_says_nothing_selects_nothing(
    admin_client: Client, filters: dict[str, str], said: str
) -> None:
    make_jobs(make_queue("acme", paused=True), 2, state=State.ERROR)

    listed = admin_client.get(LIST, filters)
    assert said in text_of(listed)
    assert not listed.context["cl"].result_list
    assert said in text_of(ask(admin_client, "retry_selected", **filters))
    assert not Job.objects.filter(queue__name="admin").exists()


def test_filters_of_other_pages_do_not_count(admin_client: Client) -> None:
    ids = make_jobs(make_queue("acme", paused=True), 12, state=State.ERROR)

    question = ask(admin_client, "retry_selected", before=str(ids[5]), trail="7.8")
    say_yes(admin_client, question)
    run_pending()

    assert set(states_of(ids).values()) == {State.READY}


def test_each_action_asks_first_and_then_acts(admin_client: Client) -> None:
    later = timezone.now() + timedelta(hours=1)
    queue = make_queue("acme", paused=True)
    make_queue("acme", "mail", paused=True)
    make_jobs(queue, 2, state=State.SCHEDULED, run_at=later)
    for action, values, states in (
        ("run_now_selected", {}, {"ready"}),
        ("change_priority_selected", {"priority": "120"}, {"ready"}),
        ("move_selected", {"queue": "mail"}, {"ready"}),
        ("cancel_selected", {}, {"cancelled"}),
        ("delete_finished_selected", {}, set()),
    ):
        question = ask(admin_client, action, tenant="acme")
        assert "?" in text_of(question), action
        assert ANSWER in text_of(answered(admin_client, question, **values)), action
        run_pending()
        jobs = Job.objects.filter(queue__tenant="acme")
        assert set(jobs.values_list("state", flat=True)) == states, action
    assert [(action, after) for action, _, after in made_changes()] == [
        ("run_now", {}),
        ("set_priority", {"priority": 120}),
        ("move", {"queue": "mail"}),
        ("cancel", {}),
        ("delete", {}),
    ]


def test_values_are_asked_for_again_when_they_are_wrong(admin_client: Client) -> None:
    queue = make_queue("acme")
    make_queue("acme", "old", retired=True)
    make_jobs(queue, 2)

    question = ask(admin_client, "change_priority_selected")
    wrong = answered(admin_client, question, priority="99999")
    assert "less than or equal to 32767" in text_of(wrong)
    question = ask(admin_client, "move_selected")
    for values, said in (
        ({"queue": "mial"}, "No tenant has a queue “mial” that takes new jobs"),
        ({"queue": "old"}, "No tenant has a queue “old” that takes new jobs"),
        ({"queue": "old", "tenant": "acme"}, "is retired"),
        ({"queue": "mail", "tenant": "zeta"}, "Tenant “zeta” has no queue “mail”"),
        ({"queue": ""}, "This field is required"),
    ):
        assert said in text_of(answered(admin_client, question, **values))
    assert not Job.objects.filter(queue__name="admin").exists()


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"state": "<script>"}, "Unknown state &#x27;&lt;script&gt;&#x27;"),
        ({"tenant": "nobody"}, "Tenant &#x27;nobody&#x27; has no queue"),
        ({"queue_id": "0 OR 1=1"}, "There is no queue 0 OR 1=1"),
        ({"task": "a\x00b"}, "There is no job with"),
    ],
)
def test_filters_that_cannot_be_are_refused(
    admin_client: Client, filters: dict[str, str], said: str
) -> None:
    make_job(state=State.ERROR)

    assert said in text_of(ask(admin_client, "retry_selected", **filters))
    assert not Job.objects.filter(queue__name="admin").exists()


def test_an_action_that_fits_no_job_says_so(admin_client: Client) -> None:
    make_job(state=State.SUCCESS)

    assert "This action does not apply to jobs in" in text_of(
        ask(admin_client, "retry_selected", state="ready")
    )
    assert "This action does not apply to any matching" in text_of(
        ask(admin_client, "retry_selected")
    )


def test_count_is_bounded(
    admin_client: Client, served: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_jobs(make_queue("acme"), 12, state=State.ERROR)
    monkeypatch.setattr(bulk_actions, "TOTAL_COUNTED_TO", 5)
    assert "more than 5." in text_of(ask(admin_client, "retry_selected"))

    monkeypatch.setattr(bulk_actions, "TOTAL_COUNTED_TO", 10_000)
    monkeypatch.setattr("django_tenantqueue.status.job_filters.COUNT_PAGE", 4)
    monkeypatch.setattr(bulk_actions, "COUNTED_PAGES", 2)
    said = text_of(ask(admin_client, "retry_selected"))
    assert "at least 8 (not all were counted)." in said


def test_question_takes_few_statements_when_no_index_has_all_filters(
    admin_client: Client, django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_tenantqueue.status.job_filters.COUNT_PAGE", 4)
    monkeypatch.setattr("django_tenantqueue.status.job_pages.WINDOW", 4)
    acme, zeta = make_queue("acme"), make_queue("zeta")
    for _ in range(30):
        make_jobs(acme, 1, state=State.ERROR, task="other")
        make_jobs(zeta, 1, state=State.ERROR, task="reports.make")
    data = {"action": "retry_selected", "_selected_action": ["1"], "index": "0"}

    with django_assert_max_num_queries(30):
        question = admin_client.post(
            f"{LIST}?state=error&tenant=acme&task=reports.make", {**data, "select_across": "1"}
        )

    assert "at least 0 (not all were counted)." in text_of(question)


def test_question_says_when_no_worker_takes_the_queue(admin_client: Client) -> None:
    make_job(state=State.ERROR)
    assert "No worker runs." in text_of(ask(admin_client, "retry_selected"))

    make_worker(queues=["mail"])
    text = text_of(ask(admin_client, "retry_selected"))
    assert "does not take queue “admin”" in text
    assert "runworker --queues admin" in text

    make_worker()
    assert "queue “admin”" not in text_of(ask(admin_client, "retry_selected"))
    make_queue("", "admin", paused=True)
    assert "is paused or has no slots" in text_of(ask(admin_client, "retry_selected"))


def test_a_retired_queue_is_a_message(admin_client: Client) -> None:
    make_job(state=State.ERROR)
    make_queue("", "admin", retired=True)

    page = say_yes(admin_client, ask(admin_client, "retry_selected"))

    assert "is retired and takes no new jobs" in text_of(page)


def test_viewers_cannot_act_on_all(operator: Callable[..., Client]) -> None:
    job = make_job(state=State.ERROR)
    viewer = operator("view_job")

    page = ask(viewer, "retry_selected")
    viewer.post(LIST, {"action": "retry_selected", "_selected_action": ["1"], "_apply": ""})

    assert "Retry all jobs" not in text_of(page)
    assert not Job.objects.filter(queue__name="admin").exists()
    assert states_of([job.pk]) == {job.pk: State.ERROR}


def test_deleting_needs_its_own_permission(operator: Callable[..., Client]) -> None:
    job = make_job(state=State.SUCCESS)

    changer = operator("view_job", "change_job")
    assert "Delete selected finished jobs" not in text_of(changer.get(LIST))
    assert "Delete all finished" not in text_of(ask(changer, "delete_finished_selected"))

    deleter = operator("view_job", "change_job", "delete_job")
    assert "Delete selected finished jobs" in text_of(deleter.get(LIST))
    assert "Delete all finished" in text_of(ask(deleter, "delete_finished_selected"))
    assert states_of([job.pk])


def test_ticked_finished_jobs_are_deleted_after_a_question(admin_client: Client) -> None:
    queue = make_queue("acme")
    first, second = make_jobs(queue, 2, state=State.SUCCESS)
    waiting = make_jobs(queue, 1)
    data = {"action": "delete_finished_selected", "_selected_action": [first, *waiting]}

    question = admin_client.post(LIST, {**data, "index": "0"}, follow=True)
    assert "Delete 2 jobs?" in text_of(question)
    page = say_yes(admin_client, question)

    assert "1 job: deleted. 1 was left as it is" in text_of(page)
    assert set(states_of([first, second, *waiting])) == {second, *waiting}
    assert made_changes() == [("delete", {"state": "success"}, {})]
    assert Change.objects.get().object_label == "tests.testapp.tasks.noop"
