"""Sessions with their lines, and user limits, in the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_tenantqueue import Serial, Unique
from django_tenantqueue.gate_keys import gate_key
from django_tenantqueue.models import ConcurrentJobMonitor, Job, Session
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import made_changes, pause_task
from tests.testapp.tasks import fail, fail_until, noop

from .conftest import text_of, url_of
from .forms import form_values

pytestmark = pytest.mark.django_db
SESSIONS = "/admin/tenantqueue/session/"
CAPS = "/admin/tenantqueue/userlimit/"


def enqueue(count: int = 3, **options: Any) -> list[Job]:
    jobs = [noop.using(session="s", tenant="acme", **options).delay() for _ in range(count)]
    run_commit_hooks("default")
    return jobs


def test_list_says_what_stands_in_each_session(admin_client: Client) -> None:
    jobs = enqueue()

    text = text_of(admin_client.get(SESSIONS))

    assert f"s acme job #{jobs[0].pk} is next; it waits for a slot 1 2" in text


@pytest.mark.parametrize("count", [1, 8])
def test_list_asks_the_database_as_often_for_many_sessions(
    admin_client: Client, count: int
) -> None:
    for number in range(count):
        noop.using(session=f"s{number}").delay()
    run_commit_hooks("default")

    with CaptureQueriesContext(connection) as queries:
        assert admin_client.get(SESSIONS).status_code == 200

    assert len(queries) < 15


def test_reason_names_the_job_that_has_halted_the_session(admin_client: Client) -> None:
    job = fail.using(session=Serial("s", on_failure="halt"), max_attempts=1).delay()
    run_pending()

    assert f": job #{job.pk} failed" in text_of(admin_client.get(SESSIONS))


def test_reason_names_what_the_session_waits_for(admin_client: Client) -> None:
    retried = fail_until.using(session="retried").delay(2, 3600.0)
    future = noop.using(session="future", run_at=timedelta(hours=1)).delay()
    run_pending()
    Session.objects.create(
        kind="serial", tenant="", key="paused", gate_key=gate_key("", "paused"), paused=True
    )

    text = text_of(admin_client.get(SESSIONS))

    assert f"job #{retried.pk} waits for another attempt at" in text
    assert f"job #{future.pk} is next; it waits for its time," in text
    assert "paused – paused 0 0" in text


def test_reason_names_the_monitor_that_has_the_turn(admin_client: Client) -> None:
    monitor = ConcurrentJobMonitor.objects.start(
        "upgrade", [noop.call()], parallel=1, tenant="acme", session="s"
    )
    run_commit_hooks("default")

    assert f"s acme monitor #{monitor.pk} has its turn 1 0" in text_of(admin_client.get(SESSIONS))


def test_reason_names_the_gate_that_holds_the_next_job(admin_client: Client) -> None:
    unique = Unique("while_executing", key="k")
    for _ in range(2):
        noop.using(limit_user="7", tenant="acme").delay()
    noop.using(unique=unique, tenant="acme").delay()
    behind = noop.using(session="capped", limit_user="7", tenant="acme").delay()
    alone = noop.using(session="alone", unique=unique, tenant="acme").delay()
    pause_task(fail.name)
    stopped = fail.using(session="stopped", tenant="acme").delay()
    run_commit_hooks("default")

    text = text_of(admin_client.get(SESSIONS))

    assert f"job #{behind.pk} is next; its user's slots are taken" in text
    assert f"job #{alone.pk} is next; another with its unique key runs" in text
    assert f"job #{stopped.pk} is next; it waits for a slot" in text  # the gate is behind the claim


def test_page_shows_the_line_in_its_order(admin_client: Client) -> None:
    jobs = enqueue()
    urgent = noop.using(session="s", tenant="acme", priority=7).delay()
    run_commit_hooks("default")

    text = text_of(admin_client.get(url_of("session", "change", Session.objects.get().pk)))

    order = [text.index(f"#{job.pk} ") for job in (urgent, *jobs)]
    assert order == sorted(order)


def test_long_line_is_shown_in_part(admin_client: Client) -> None:
    noop.using(session="s").enqueue_many([()] * 60)
    run_commit_hooks("default")

    text = text_of(admin_client.get(url_of("session", "change", Session.objects.get().pk)))

    assert "and 9 more held" in text


def test_session_is_paused_in_the_list(admin_client: Client) -> None:
    jobs = enqueue()
    values = form_values(admin_client.get(SESSIONS), "form-TOTAL_FORMS")

    response = admin_client.post(SESSIONS, {**values, "form-0-paused": "on", "_save": "Save"})

    assert response.status_code == 302
    run_commit_hooks("default")
    assert [job.refresh().state for job in jobs] == ["held"] * 3
    assert made_changes() == [("pause", {"paused": False}, {"paused": True})]


def test_operator_sees_a_conflict_when_somebody_was_faster(admin_client: Client) -> None:
    enqueue()
    page = url_of("session", "change", Session.objects.get().pk)
    values = form_values(admin_client.get(page), "paused")
    Session.objects.update(on_failure="halt")

    response = admin_client.post(page, {**values, "on_failure": "continue", "_save": "Save"})

    assert "meanwhile another operator set it to" in text_of(response)
    assert Session.objects.get().on_failure == "halt"


def test_halted_session_is_resumed(admin_client: Client) -> None:
    fail.using(session=Serial("s", on_failure="halt"), tenant="acme", max_attempts=1).delay()
    run_pending()
    (waiting,) = enqueue(1)
    session = Session.objects.get()
    assert waiting.refresh().state == "held"

    response = admin_client.post(
        SESSIONS, {"action": "resume_selected", "_selected_action": session.pk}, follow=True
    )

    run_commit_hooks("default")
    assert "1 session resumed." in text_of(response)
    assert waiting.refresh().state == "ready"
    session.refresh_from_db()
    assert (session.halted_at, session.halted_by) == (None, None)


def test_sessions_and_caps_are_apart(admin_client: Client) -> None:
    enqueue(1)
    noop.using(limit_user="7", tenant="acme").delay()
    run_commit_hooks("default")

    assert "s acme " in text_of(admin_client.get(SESSIONS))
    assert "7 acme " not in text_of(admin_client.get(SESSIONS))
    assert "7 acme " in text_of(admin_client.get(CAPS))
    assert "acme s " not in text_of(admin_client.get(CAPS))


def test_cap_is_added_before_the_first_job_and_holds(admin_client: Client) -> None:
    added = admin_client.post(
        url_of("userlimit", "add"), {"tenant": "acme", "key": "", "num_slots": "3", "_save": "Save"}
    )
    assert added.status_code == 302, text_of(added)
    assert "(all users without a limit of their own)" in text_of(admin_client.get(CAPS))

    jobs = [noop.using(limit_user="7", tenant="acme").delay() for _ in range(5)]
    run_commit_hooks("default")

    assert [job.refresh().state for job in jobs].count("ready") == 3


def test_cap_is_changed_in_the_list(admin_client: Client) -> None:
    jobs = [noop.using(limit_user="7", tenant="acme").delay() for _ in range(5)]
    run_commit_hooks("default")
    values = form_values(admin_client.get(CAPS), "form-TOTAL_FORMS")

    response = admin_client.post(CAPS, {**values, "form-0-num_slots": "4", "_save": "Save"})

    assert response.status_code == 302, text_of(response)
    run_commit_hooks("default")
    assert [job.refresh().state for job in jobs].count("ready") == 4


@pytest.mark.parametrize("tenant", ["acme", ""])
@pytest.mark.parametrize("key", ["7", ""])
def test_cap_that_exists_is_refused_with_a_message(
    admin_client: Client, tenant: str, key: str
) -> None:
    values = {"tenant": tenant, "key": key, "num_slots": "3", "_save": "Save"}
    assert admin_client.post(url_of("userlimit", "add"), values).status_code == 302

    again = admin_client.post(url_of("userlimit", "add"), values)

    assert again.status_code == 200
    assert "This user has a limit already" in text_of(again)


def test_job_page_says_that_it_stands_in_a_line(admin_client: Client) -> None:
    first, second, _third = enqueue()

    text = text_of(admin_client.get(url_of("job", "change", second.pk)))

    assert f"It waits in its session behind job #{first.pk}" in text


def test_healthy_session_has_no_colour_and_a_halted_one_is_red(admin_client: Client) -> None:
    enqueue()
    assert "tq-state" not in admin_client.get(SESSIONS).content.decode()

    fail.using(session=Serial("t", on_failure="halt"), max_attempts=1).delay()
    run_pending()

    content = admin_client.get(SESSIONS).content.decode()
    assert '<span class="tq-state tq-state-error">halted</span> since' in content


def test_paused_session_is_red_when_jobs_are_in_line_alone(admin_client: Client) -> None:
    enqueue()
    Session.objects.update(paused=True)
    content = admin_client.get(SESSIONS).content.decode()
    assert '<span class="tq-state tq-state-error">paused</span>' in content

    Job.objects.all().delete()

    content = admin_client.get(SESSIONS).content.decode()
    assert '<span class="tq-state tq-state-held">paused</span>' in content


def test_cap_says_that_it_holds_jobs(admin_client: Client) -> None:
    noop.using(limit_user=7, tenant="acme").delay()
    run_commit_hooks("default")
    assert "tq-state" not in admin_client.get(CAPS).content.decode()

    Session.objects.update(num_slots=1)
    noop.using(limit_user=7, tenant="acme").delay()
    run_commit_hooks("default")
    assert ">full</span>" in admin_client.get(CAPS).content.decode()

    Session.objects.update(num_slots=0)
    assert ">no slots</span>" in admin_client.get(CAPS).content.decode()
