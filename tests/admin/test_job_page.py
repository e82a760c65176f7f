"""One job's page: what it shows in every state, its buttons and its form."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from django_tenantqueue.execution.outcome import UNKNOWN_CLASS
from django_tenantqueue.models import Job, QueueRate, Session, TaskControl, UserLimit
from django_tenantqueue.operations import control
from django_tenantqueue.states import State
from tests.factories import made_changes, make_job, make_queue, make_worker, state_of

from .conftest import text_of, url_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db


def address(job: Job | int) -> str:
    return url_of("job", "change", job if isinstance(job, int) else job.pk)


def press(client: Client, job: Job, button: str) -> str:
    """Press a button of the page; return the page that follows."""
    response = client.post(address(job), {button: "1"}, follow=True)
    asks = button == "_cancel" and not job.final
    return text_of(say_yes(client, response) if asks else response)


ERRORS = [
    {
        "at": (timezone.now() - timedelta(minutes=number)).isoformat(),
        "attempt": 3 - number,
        "class": "ValueError",
        "message": f"<b>message {number}</b>",
        "traceback": f"Traceback {number}",
    }
    for number in (2, 1)
]


@pytest.mark.parametrize("state", list(State))
def test_page_is_shown_in_every_state(admin_client: Client, state: State) -> None:
    job = make_job(
        state=state,
        args={"args": [1, "two"], "kwargs": {"format": "pdf"}},
        errors=ERRORS,
        stats={"rows": 12},
        context={"language": "de"},
        labels=["nightly"],
        progress_done=30,
        progress_total=100,
        progress_message="page 30",
        created_by="ada",
        timeout_seconds=90.0,
    )

    response = admin_client.get(address(job))

    content, text = response.content.decode(), text_of(response)
    assert f"tq-state-{state.value}" in content
    for part in (
        "&quot;two&quot;",
        "format",
        "&quot;pdf&quot;",
        "30 of 100",
        "page 30",
        "Traceback 1",
    ):
        assert part in content, part
    for part in ("rows 12", "language de", "labels nightly", "created by ada", "1 min 30 s"):
        assert part in text, part
    assert "&lt;b&gt;message 1&lt;/b&gt;" in content
    assert ("_tune" in content) == (state in ("scheduled", "held", "ready"))
    assert ('name="_retry"' in content) == (state in ("error", "cancelled"))
    assert ('name="_cancel"' in content) == (state not in ("success", "error", "cancelled"))
    assert ('name="_run_now"' in content) == (state == "scheduled")


def test_page_says_that_no_worker_knows_the_task(admin_client: Client) -> None:
    unknown = [{"class": UNKNOWN_CLASS, "message": "no such task", "attempt": 1}]
    job = make_job(task="tests.gone", state=State.SCHEDULED, errors=unknown)

    text = text_of(admin_client.get(address(job)))

    assert "The workers that claimed it do not have the task “tests.gone”" in text
    assert "no such task" in text


def make_session(**columns: Any) -> Session:
    return Session.objects.create(
        kind="serial", tenant="acme", key="ledger", gate_key="acme/ledger", **columns
    )


def held_page(client: Client, **columns: Any) -> str:
    job = make_job(state=State.HELD, **columns)
    return text_of(client.get(address(job)))


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (
            {"halted_at": timezone.now(), "halted_by": 41},
            "Its session halted because job #41 failed or was cancelled.",
        ),
        ({"paused": True}, "Its session is paused."),
    ],
)
def test_page_says_why_its_session_holds_a_job(
    admin_client: Client, columns: dict[str, Any], told: str
) -> None:
    make_session(**columns)

    text = held_page(admin_client, held_by="session", session_key="acme/ledger")

    assert told in text
    assert "session: acme / ledger" in text


def test_page_names_the_job_before_it_in_its_session(admin_client: Client) -> None:
    session = make_session()
    first = make_job(state=State.RUNNING, session_key="acme/ledger")
    job = make_job(state=State.HELD, held_by="session", session_key="acme/ledger")

    content = admin_client.get(address(job)).content.decode()

    assert f"behind job #{first.pk} (running)" in content
    assert f'<a href="{address(first)}">job #{first.pk}</a>' in content
    assert url_of("session", "change", session.pk) in content


def test_page_of_a_job_whose_session_has_no_row_yet_says_where_it_stands(
    admin_client: Client,
) -> None:
    text = held_page(admin_client, held_by="session", session_key="acme/ledger")

    assert "It is held by its session, and not ready yet." in text
    assert "Its session has room for it, but has not released it yet." in text


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"paused": True}, "Its task is paused."),
        (
            {"num_slots": 1},
            "Its task has reached its limit: 1 job may run at once, of all tenants.",
        ),
    ],
)
def test_page_links_what_holds_a_job_of_a_controlled_task(
    admin_client: Client, columns: dict[str, Any], told: str
) -> None:
    control = TaskControl.objects.create(task="tests.held", **columns)
    make_job(state=State.RUNNING, task="tests.held", task_at=timezone.now())
    job = make_job(state=State.HELD, held_by="task", task="tests.held")

    response = admin_client.get(address(job))

    assert told in text_of(response)
    assert "task: tests.held" in text_of(response)
    assert url_of("taskcontrol", "change", control.pk) in response.content.decode()


def test_page_links_the_cap_of_the_user(admin_client: Client) -> None:
    cap = UserLimit.objects.create(
        kind="limit_user", tenant="acme", key="ada", gate_key="acme/ada", num_slots=1
    )
    job = make_job(limit_user="acme/ada")

    content = admin_client.get(address(job)).content.decode()

    assert f'<a href="{url_of("userlimit", "change", cap.pk)}">acme/ada</a>' in content


def test_result_is_shown_from_the_row_or_the_cache(admin_client: Client) -> None:
    in_row = make_job(state=State.SUCCESS, result={"answer": 42})
    in_cache = make_job(state=State.SUCCESS, result_ref="default:result-1")
    lost = make_job(state=State.SUCCESS, result_ref="default:result-2")
    nothing = make_job(state=State.SUCCESS)
    cache.set("result-1", ["from the cache"])

    assert "&quot;answer&quot;: 42" in admin_client.get(address(in_row)).content.decode()
    assert "from the cache" in text_of(admin_client.get(address(in_cache)))
    assert "no longer in the cache" in text_of(admin_client.get(address(lost)))
    assert "The task returned nothing" in text_of(admin_client.get(address(nothing)))


def test_large_results_are_cut(admin_client: Client) -> None:
    job = make_job(state=State.SUCCESS, result="x" * 50_000)

    response = admin_client.get(address(job))

    assert "10000 of 50002 characters" in text_of(response)
    assert len(response.content) < 60_000


def test_a_job_that_does_not_exist_leads_back(admin_client: Client) -> None:
    for missing in ("4711", "abc", "9" * 30, "9" * 5000):
        response = admin_client.get(url_of("job", "change", missing), follow=True)
        assert "doesn’t exist" in text_of(response)


def test_retry_makes_a_failed_job_ready(admin_client: Client) -> None:
    job = make_job(state=State.ERROR)

    assert "1 job: made ready again." in press(admin_client, job, "_retry")

    assert state_of(job.pk) == State.READY
    assert made_changes() == [("retry", {"state": "error"}, {"state": "ready"})]


def test_cancel_ends_a_waiting_job(admin_client: Client) -> None:
    job = make_job(state=State.READY)

    assert "1 job: cancelled." in press(admin_client, job, "_cancel")

    assert state_of(job.pk) == State.CANCELLED


def test_cancel_asks_a_running_job_to_stop(admin_client: Client) -> None:
    job = make_job(state=State.RUNNING)

    text = press(admin_client, job, "_cancel")

    assert "1 job: running and asked to stop." in text
    assert "Its cancellation was requested at " in text
    assert "Last set by admin" in text
    job.refresh_from_db()
    assert job.cancel_requested_at is not None


def test_run_now_makes_a_scheduled_job_ready(admin_client: Client) -> None:
    job = make_job(state=State.SCHEDULED, run_at=timezone.now() + timedelta(hours=1))

    assert "1 job: made due now." in press(admin_client, job, "_run_now")

    assert state_of(job.pk) == State.READY


def test_a_button_pressed_too_late_says_so(admin_client: Client) -> None:
    job = make_job(state=State.SUCCESS)

    for button in ("_retry", "_cancel", "_run_now", "_tune"):
        text = press(admin_client, job, button)
        assert "its state does not allow it" in text, button

    assert state_of(job.pk) == State.SUCCESS
    assert not made_changes()


def edit(client: Client, job: Job, **edits: str) -> Any:
    values = form_values(client.get(address(job)), "priority")
    return client.post(address(job), {**values, **edits, "_tune": "1"})


def test_queue_of_a_waiting_job_is_changed(admin_client: Client) -> None:
    queue = make_queue("acme", "mail")
    job = make_job(make_queue("acme"))

    unknown = edit(admin_client, job, queue="mial")
    assert "Tenant “acme” has no queue “mial”: add it first." in text_of(unknown)
    edit(admin_client, job, queue="mail")

    assert job.refresh().queue_id == queue.pk
    after = {"queue": "acme / mail"}
    assert made_changes() == [("move", {"queue": "acme / default"}, after)]


@pytest.mark.parametrize("name", [" mail ", " "])
def test_job_of_a_queue_with_blanks_in_its_name_is_tuned(admin_client: Client, name: str) -> None:
    queue = make_queue("acme", name)
    job = make_job(queue)
    make_queue("acme", "mail")

    assert edit(admin_client, job, priority="120").status_code == 302

    job.refresh_from_db()
    assert (job.priority, job.queue_id) == (120, queue.pk)


def test_priority_and_time_of_a_waiting_job_are_changed(admin_client: Client) -> None:
    job = make_job(state=State.READY)
    later = (timezone.now() + timedelta(days=2)).replace(microsecond=0)

    response = edit(admin_client, job, priority="120", run_at=later.strftime("%Y-%m-%dT%H:%M:%S"))

    assert response.status_code == 302
    job.refresh_from_db()
    assert (job.priority, job.lane, job.run_at, job.state) == (120, 120, later, "scheduled")
    first, second = made_changes()
    assert first == ("set_priority", {"priority": 240}, {"priority": 120})
    assert (second[0], parse_datetime(second[2]["run_at"])) == ("set_run_at", later)


def test_saving_the_form_unchanged_changes_nothing(admin_client: Client) -> None:
    job = make_job(state=State.SCHEDULED, run_at=timezone.now() + timedelta(hours=1))

    assert edit(admin_client, job).status_code == 302

    assert Job.objects.get(pk=job.pk).run_at == job.run_at
    assert not made_changes()


def test_a_stale_form_reverts_nothing_and_conflicts_are_named(admin_client: Client) -> None:
    job = make_job(state=State.READY)
    values = form_values(admin_client.get(address(job)), "priority")
    control.change_priority([job.pk], 300)

    later = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%S")
    untouched = admin_client.post(address(job), {**values, "run_at": later, "_tune": "1"})
    refused = admin_client.post(address(job), {**values, "priority": "120", "_tune": "1"})

    assert untouched.status_code == 302
    assert refused.status_code == 200
    assert "from 240 to 120, but meanwhile it became 300" in text_of(refused)
    job.refresh_from_db()
    assert (job.priority, job.state) == (300, "scheduled")

    knowing = form_values(refused, "priority")
    admin_client.post(address(job), {**knowing, "_tune": "1"})
    job.refresh_from_db()
    assert job.priority == 120


@pytest.mark.parametrize("wrong", ["40000", "-40000", "urgent", ""])
def test_a_wrong_priority_is_a_form_error(admin_client: Client, wrong: str) -> None:
    job = make_job(state=State.READY)

    assert edit(admin_client, job, priority=wrong).status_code == 200

    job.refresh_from_db()
    assert job.priority == 240


def test_an_edit_after_the_start_is_too_late(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(state=State.READY)
    monkeypatch.setattr(control, "change_priority", lambda *args, **kwargs: [])

    response = edit(admin_client, job, priority="120")

    assert "Too late" in text_of(admin_client.get(response.url))
    assert not made_changes()


@pytest.mark.parametrize(
    ("columns", "running", "said"),
    [
        ({"paused": True}, 0, "Its queue is paused"),
        ({"num_slots": 2}, 2, "All 2 slots of its queue are taken"),
        ({}, 0, "No worker runs."),
    ],
)
def test_page_says_what_a_job_waits_for(
    admin_client: Client, columns: dict[str, Any], running: int, said: str
) -> None:
    queue = make_queue(**columns)
    for _ in range(running):
        make_job(queue, state=State.RUNNING)

    assert said in text_of(admin_client.get(address(make_job(queue))))


def test_page_says_that_no_worker_takes_the_queue_of_a_job(admin_client: Client) -> None:
    make_worker(queues=["mail"])
    job = make_job(make_queue("acme", "reports"))

    text = text_of(admin_client.get(address(job)))

    assert "The 1 worker that runs does not take queue “reports” of tenant “acme”" in text
    assert "It waits for its turn" not in text


def test_page_lists_all_causes_with_links_and_the_operator(admin_client: Client) -> None:
    queue = make_queue("<b>acme</b>", "<i>mail</i>", num_slots=1)
    running = make_job(queue, state=State.RUNNING)
    job = make_job(queue, task="<script>alert(1)</script>")
    chosen = {"action": "pause_selected", "_selected_action": [queue.pk]}
    say_yes(admin_client, admin_client.post(url_of("tenantqueue", "changelist"), chosen))

    response = admin_client.get(address(job))

    content, text = response.content.decode(), text_of(response)
    for told in (
        "It is ready, and waits to be claimed.",
        "No worker runs.",
        "Its queue is paused. Last set by admin (admin), ",
        "The 1 slot of its queue is taken",
    ):
        assert told in text, told
    assert url_of("tenantqueue", "change", queue.pk) in content
    assert f'<a href="{address(running)}">job #{running.pk}</a>' in content
    for hostile in ("<b>acme", "<i>mail", "<script>alert"):
        assert hostile not in content


def test_page_of_a_finished_job_explains_nothing(admin_client: Client) -> None:
    content = admin_client.get(address(make_job(state=State.SUCCESS))).content.decode()

    assert "tq-answer" not in content


def test_page_says_when_the_rate_of_its_queue_allows_the_next_start(admin_client: Client) -> None:
    queue = make_queue(max_per_second=0.001, burst=1)
    job = make_job(queue)
    assert "No worker runs." in text_of(admin_client.get(address(job)))
    QueueRate.objects.create(queue=queue, debt=1.0, as_of=timezone.now())

    said = text_of(admin_client.get(address(job)))

    assert re.search(r"may start 0\.001 jobs in a second: the next one in 16 min \d+ s", said)


def test_history_page_shows_what_operators_did(admin_client: Client) -> None:
    job = make_job(state=State.ERROR)
    press(admin_client, job, "_retry")

    history = text_of(admin_client.get(url_of("job", "history", job.pk)))

    assert "admin admin retried" in history
    assert "state error → ready" in history


def test_jobs_are_neither_added_nor_deleted(admin_client: Client) -> None:
    job = make_job()

    assert admin_client.get(url_of("job", "add")).status_code == 403
    assert admin_client.get(url_of("job", "delete", job.pk)).status_code == 403


def test_a_held_job_has_no_time_to_edit(admin_client: Client) -> None:
    job = make_job(state=State.HELD)

    assert 'name="run_at"' not in admin_client.get(address(job)).content.decode()
    assert edit(admin_client, job, priority="120").status_code == 302
    assert Job.objects.get(pk=job.pk).priority == 120


def test_a_conflict_in_time_names_both_times(admin_client: Client) -> None:
    soon = timezone.now() + timedelta(hours=1)
    job = make_job(state=State.SCHEDULED, run_at=soon)
    values = form_values(admin_client.get(address(job)), "priority")
    moved = (soon + timedelta(hours=1)).replace(microsecond=0)
    control.change_run_at([job.pk], moved)

    response = admin_client.post(
        address(job), {**values, "run_at": "2100-01-01T00:00:00", "_tune": "1"}
    )

    assert f"meanwhile it became {moved:%Y-%m-%d %H:%M:%S}" in text_of(response)
    assert Job.objects.get(pk=job.pk).run_at == moved

    admin_client.post(address(job), {**form_values(response, "priority"), "_tune": "1"})
    assert Job.objects.get(pk=job.pk).run_at.year == 2100


@pytest.mark.parametrize("column", ["args", "errors", "stats", "result", "context"])
@pytest.mark.parametrize(
    "value", [5, "text", [1, "two", None], {"args": 3, "kwargs": [1]}, [{"at": "2020-99-99"}]]
)
def test_page_is_shown_when_raw_sql_has_put_in_another_shape(
    admin_client: Client, column: str, value: Any
) -> None:
    job = make_job(state=State.SUCCESS, **{column: value})

    assert admin_client.get(address(job)).status_code == 200
    assert admin_client.get(url_of("job", "changelist")).status_code == 200
