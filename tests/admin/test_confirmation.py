"""Actions that ask before they act, and those that act at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    Job,
    Session,
    TaskControl,
    TenantQueue,
    UserLimit,
    Worker,
)
from django_tenantqueue.states import State
from tests.factories import make_job, make_jobs, make_queue, make_worker, state_of
from tests.operations.monitors import start

from .conftest import text_of, url_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db


def _line(model: type[Session], kind: str) -> Session:
    return model._default_manager.create(
        kind=kind, tenant="acme", key="7", gate_key=gate_key("acme", kind)
    )


CASES: dict[str, tuple[str, str, Callable[[], Any], Callable[[Any], bool], str]] = {
    "queue": (
        "tenantqueue",
        "pause_selected",
        make_queue,
        lambda row: TenantQueue.objects.get(pk=row.pk).paused,
        "No jobs of these queues start until you resume them.",
    ),
    "session": (
        "session",
        "pause_selected",
        lambda: _line(Session, "serial"),
        lambda row: Session.objects.get(pk=row.pk).paused,
        "No further jobs of these sessions are released until you resume them.",
    ),
    "user": (
        "userlimit",
        "pause_selected",
        lambda: _line(UserLimit, "limit_user"),
        lambda row: UserLimit.objects.get(pk=row.pk).paused,
        "No further jobs of these users are released until you resume them.",
    ),
    "task": (
        "taskcontrol",
        "pause_selected",
        lambda: TaskControl.objects.create(task="app.task"),
        lambda row: TaskControl.objects.get(pk=row.pk).paused,
        "No worker starts jobs of these tasks, for any tenant,",
    ),
    "monitor": (
        "concurrentjobmonitor",
        "pause_selected",
        start,
        lambda row: ConcurrentJobMonitor.objects.get(pk=row.pk).paused,
        "No further details of these monitors start until you resume them.",
    ),
    "monitor cancelled": (
        "concurrentjobmonitor",
        "cancel_selected",
        start,
        lambda row: ConcurrentJobMonitor.objects.get(pk=row.pk).cancelled_at is not None,
        "The callback does not run. A cancelled monitor cannot be resumed.",
    ),
    "job": (
        "job",
        "cancel_selected",
        make_job,
        lambda row: state_of(row.pk) == State.CANCELLED,
        "A waiting job ends now and never starts.",
    ),
    "worker drained": (
        "worker",
        "drain_selected",
        make_worker,
        lambda row: Worker.objects.get(pk=row.pk).draining,
        "Each process claims no more jobs, finishes its running jobs, however long they take,",
    ),
    "worker stopped": (
        "worker",
        "stop_selected",
        make_worker,
        lambda row: Worker.objects.get(pk=row.pk).stopping,
        "stops after its shutdown timeout at the latest.",
    ),
}


def choose(
    client: Client, model: str, action: str, *ids: int, query: str = "", **more: Any
) -> HttpResponse:
    """Tick rows of a list and run an action."""
    data = {"action": action, "_selected_action": ids, "index": "0", **more}
    return client.post(f"{url_of(model, 'changelist')}?{query}", data)


@pytest.mark.parametrize("case", CASES)
def test_action_asks_and_then_acts(admin_client: Client, case: str) -> None:
    model, action, make, is_done, told = CASES[case]
    row = make()
    verb = action.partition("_")[0]

    question = choose(admin_client, model, action, row.pk)

    text = text_of(question)
    assert f"{verb.title()} 1 {row._meta.verbose_name}?" in text
    assert told in text
    assert str(row) in text
    assert f'value="Yes, {verb} 1 {row._meta.verbose_name}"' in question.content.decode()
    assert not is_done(row)

    say_yes(admin_client, question)

    assert is_done(row)


@pytest.mark.parametrize("case", CASES)
def test_action_on_rows_that_are_gone_asks_nothing(admin_client: Client, case: str) -> None:
    model, action, *_ = CASES[case]

    response = choose(admin_client, model, action, 4711)

    assert response.status_code == 302
    text = text_of(admin_client.get(response.url))
    assert "0 " in text


def test_no_goes_back_to_the_list_with_its_filters(admin_client: Client) -> None:
    worker = make_worker(host="web-1")

    question = choose(admin_client, "worker", "drain_selected", worker.pk, query="q=web&o=2")

    address = f'href="{url_of("worker", "changelist")}?q=web&amp;o=2"'
    assert f"{address}>No, go back" in question.content.decode()
    done = say_yes(admin_client, question)
    assert done.redirect_chain[-1][0].endswith("?q=web&o=2")  # type: ignore[attr-defined]


def test_question_names_20_rows_and_counts_the_others(admin_client: Client) -> None:
    queues = [make_queue("<b>acme</b>", f"q{number:02}") for number in range(25)]

    question = choose(admin_client, "tenantqueue", "pause_selected", *(q.pk for q in queues))

    content = question.content.decode()
    assert content.count("<li>&lt;b&gt;acme&lt;/b&gt; / q") == 20
    assert "<b>acme" not in content
    assert "and 5 more" in content
    assert "Pause 25 tenant queues?" in content
    say_yes(admin_client, question)
    assert TenantQueue.objects.filter(paused=True).count() == 25


def test_all_rows_of_a_list_are_asked_about_again_when_their_number_changes(
    admin_client: Client,
) -> None:
    queues = [make_queue("acme"), make_queue("zeta")]
    make_queue("other", "mail")
    first = choose(
        admin_client,
        "tenantqueue",
        "pause_selected",
        queues[0].pk,
        query="queue=default",
        select_across="1",
    )
    assert "Pause 2 tenant queues?" in text_of(first)
    make_queue("late")

    second = say_yes(admin_client, first)

    assert "Pause 3 tenant queues?" in text_of(second)
    assert not TenantQueue.objects.filter(paused=True).exists()
    say_yes(admin_client, second)
    assert set(TenantQueue.objects.filter(paused=True).values_list("name", flat=True)) == {
        "default"
    }
    assert TenantQueue.objects.filter(paused=True).count() == 3


def test_question_says_when_no_other_worker_is_left(admin_client: Client) -> None:
    first, second = make_worker(), make_worker(name="web-2:1")
    make_worker(name="web-3:1", draining=True)
    last = "No other worker is left: jobs wait until you start one."

    assert last not in text_of(choose(admin_client, "worker", "drain_selected", first.pk))
    both = choose(admin_client, "worker", "stop_selected", first.pk, second.pk)
    assert last in text_of(both)


@pytest.mark.parametrize(("button", "column"), [("_drain", "draining"), ("_stop", "stopping")])
def test_buttons_of_a_workers_page_ask_and_then_act(
    admin_client: Client, button: str, column: str
) -> None:
    worker, other = make_worker(), make_worker(name="web-2:1")
    page = url_of("worker", "change", worker.pk)
    assert f'name="{button}"' in admin_client.get(page).content.decode()

    question = admin_client.post(page, {button: "1"})

    assert f"{button[1:].title()} 1 worker?" in text_of(question)
    assert f'href="{page}">No, go back' in question.content.decode()
    assert not Worker.objects.filter(**{column: True}).exists()

    done = say_yes(admin_client, question)

    assert Worker.objects.get(**{column: True}) == worker
    assert f'name="{button}"' not in done.content.decode()
    assert not getattr(Worker.objects.get(pk=other.pk), column)


def test_buttons_of_a_workers_page_need_the_permission_to_change(
    operator: Callable[..., Client],
) -> None:
    worker = make_worker()
    page = url_of("worker", "change", worker.pk)
    viewer = operator("view_worker")

    assert 'name="_drain"' not in viewer.get(page).content.decode()
    assert viewer.post(page, {"_drain": "1", "_apply": "1"}).status_code == 403
    assert Worker.objects.filter(draining=False).exists()
    allowed = operator("view_worker", "change_worker")
    allowed.post(page, {"_drain": "1", "_apply": "1"})
    assert Worker.objects.filter(draining=True).exists()


def test_button_of_a_worker_that_has_gone_leads_back(admin_client: Client) -> None:
    response = admin_client.post(url_of("worker", "change", 4711), {"_drain": "1"}, follow=True)

    assert "doesn’t exist" in text_of(response)


def test_cancel_button_of_a_job_asks(admin_client: Client) -> None:
    job = make_job()
    page = url_of("job", "change", job.pk)

    question = admin_client.post(page, {"_cancel": "1"})

    assert "Cancel 1 job?" in text_of(question)
    assert state_of(job.pk) == State.READY
    assert form_values(question, "_apply") == {"_cancel": "1", "_apply": "1"}


@pytest.mark.parametrize(
    ("action", "columns", "after"),
    [
        ("retry_selected", {"state": State.ERROR}, State.READY),
        ("run_now_selected", {"state": State.SCHEDULED}, State.READY),
    ],
)
def test_retry_and_run_now_act_at_once(
    admin_client: Client, action: str, columns: dict[str, Any], after: State
) -> None:
    job = make_job(**columns)

    assert choose(admin_client, "job", action, job.pk).status_code == 302
    assert state_of(job.pk) == after


def test_resume_acts_at_once(admin_client: Client) -> None:
    queue = make_queue(paused=True)

    assert choose(admin_client, "tenantqueue", "resume_selected", queue.pk).status_code == 302
    assert not TenantQueue.objects.get(pk=queue.pk).paused


def test_cancel_reaches_the_ticked_jobs_of_every_page(admin_client: Client) -> None:
    ids = make_jobs(make_queue(), 3)

    say_yes(admin_client, choose(admin_client, "job", "cancel_selected", *ids[:2]))

    assert Job.objects.filter(state=State.CANCELLED).count() == 2
