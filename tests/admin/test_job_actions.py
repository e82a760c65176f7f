"""Actions on ticked jobs: each says how many it changed and how many were too late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from django_tenantqueue.models import Change, Job
from django_tenantqueue.operations.monitor_control import cancel_monitor
from django_tenantqueue.states import State
from tests.factories import made_changes, make_job, make_jobs, make_queue, states_of
from tests.operations.monitors import start
from tests.testapp.tasks import noop

from .conftest import text_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/job/"


def act(client: Client, action: str, ids: list[int], query: str = "", **more: Any) -> HttpResponse:
    data = {"action": action, "_selected_action": ids, "index": "0", **more}
    response = client.post(f"{LIST}?{query}", data, follow=True)
    return say_yes(client, response) if action == "cancel_selected" else response


def test_retry_counts_those_that_had_not_failed(admin_client: Client) -> None:
    queue = make_queue()
    failed = make_jobs(queue, 2, state=State.ERROR)
    running = make_jobs(queue, 1, state=State.RUNNING)

    text = text_of(act(admin_client, "retry_selected", failed + running))

    assert "2 jobs: made ready again. 1 was left as it is" in text
    assert set(states_of(failed).values()) == {State.READY}
    change = Change.objects.get()
    assert (change.object_ids, change.object_count) == (failed, 2)
    assert made_changes() == [("retry", {"state": "error"}, {"state": "ready"})]


def test_retry_says_which_belong_to_a_cancelled_monitor(admin_client: Client) -> None:
    monitor = start(on_end=noop.call())
    cancel_monitor(monitor.pk)
    other = make_job(state=State.CANCELLED)

    answer = act(admin_client, "retry_selected", [monitor.anchor_id, other.pk])

    text = text_of(answer)
    assert "1 job: made ready again." in text
    assert "1 job was left as it is: its monitor was cancelled. Start another monitor." in text
    assert "any more" not in text
    assert states_of([monitor.anchor_id, other.pk]) == {
        monitor.anchor_id: "cancelled",
        other.pk: "ready",
    }


def test_cancel_tells_waiting_from_running_from_finished(admin_client: Client) -> None:
    queue = make_queue()
    waiting = make_jobs(queue, 2)
    running = make_jobs(queue, 1, state=State.RUNNING)
    finished = make_jobs(queue, 3, state=State.SUCCESS)

    text = text_of(act(admin_client, "cancel_selected", waiting + running + finished))

    assert "2 jobs: cancelled. 3 were left as they are" in text
    assert "1 job: running and asked to stop." in text
    assert set(states_of(waiting).values()) == {State.CANCELLED}


def test_run_now(admin_client: Client) -> None:
    later = timezone.now() + timedelta(hours=1)
    ids = make_jobs(make_queue(), 2, state=State.SCHEDULED, run_at=later)

    assert "2 jobs: made due now." in text_of(act(admin_client, "run_now_selected", ids))


def test_a_job_that_left_the_filter_is_reported_as_too_late(admin_client: Client) -> None:
    job = make_job(state=State.SUCCESS)

    response = act(admin_client, "cancel_selected", [job.pk], query="state=ready")

    assert "0 jobs: cancelled. 1 was left as it is" in text_of(response)


def test_change_priority_asks_for_it_first(admin_client: Client) -> None:
    queue = make_queue()
    waiting = make_jobs(queue, 2)
    running = make_jobs(queue, 1, state=State.RUNNING)

    form = act(admin_client, "change_priority_selected", waiting + running)

    assert "Give these 3 jobs a new priority" in text_of(form)
    assert Job.objects.filter(priority=240).count() == 3

    values = form_values(form, "priority")
    wrong = admin_client.post(LIST, {**values, "priority": "99999"})
    assert "less than or equal to 32767" in text_of(wrong)

    done = admin_client.post(LIST, {**values, "priority": "120"}, follow=True)
    assert "2 jobs: priority → 120. 1 was left as it is" in text_of(done)
    assert Job.objects.filter(pk__in=waiting, priority=120, lane=120).count() == 2
    assert made_changes() == [("set_priority", {"priority": 240}, {"priority": 120})]


def test_move_asks_for_a_queue_first(admin_client: Client) -> None:
    mail, other = make_queue("acme", "mail"), make_queue("zeta", "mail")
    waiting = make_jobs(make_queue("acme"), 2)
    of_zeta = make_jobs(make_queue("zeta"), 1, session_key="zeta/7")
    running = make_jobs(make_queue("acme", "slow"), 1, state=State.RUNNING)

    form = act(admin_client, "move_selected", waiting + of_zeta + running)

    assert "Move these 4 jobs to another queue" in text_of(form)
    values = form_values(form, "queue")
    wrong = admin_client.post(LIST, {**values, "queue": "mial"})
    assert "Tenant “acme” has no queue “mial”: add it first." in text_of(wrong)
    assert not Job.objects.filter(queue__in=[mail, other]).exists()

    done = admin_client.post(LIST, {**values, "queue": "mail"}, follow=True)

    assert "3 jobs: moved." in text_of(done)
    assert "1 not moved" in text_of(done)
    assert set(Job.objects.filter(queue=mail).values_list("pk", flat=True)) == set(waiting)
    assert list(Job.objects.filter(queue=other).values_list("pk", flat=True)) == of_zeta
    assert [change[2] for change in made_changes()] == [{"queue": str(mail)}, {"queue": str(other)}]


def test_jobs_of_a_session_stay_with_their_tenant_when_moved(admin_client: Client) -> None:
    zeta = make_queue("zeta", "mail")
    free = make_job(make_queue("acme"))
    bound = make_job(make_queue("acme", "slow"), session_key="acme/7")
    values = form_values(act(admin_client, "move_selected", [free.pk, bound.pk]), "queue")

    done = admin_client.post(LIST, {**values, "tenant": "zeta", "queue": "mail"}, follow=True)

    assert "1 job: moved." in text_of(done)
    assert "1 not moved" in text_of(done)
    assert Job.objects.get(queue=zeta).pk == free.pk


def test_jobs_are_not_moved_to_a_retired_queue(admin_client: Client) -> None:
    make_queue("acme", "old", retired=True)
    values = form_values(
        act(admin_client, "move_selected", [make_job(make_queue("acme")).pk]), "queue"
    )

    assert "is retired" in text_of(admin_client.post(LIST, {**values, "queue": "old"}))


def test_nothing_beyond_the_ticked_jobs_is_touched(admin_client: Client) -> None:
    first, second = make_jobs(make_queue(), 2)

    act(admin_client, "cancel_selected", [first], select_across="0")

    assert states_of([first, second]) == {first: State.CANCELLED, second: State.READY}
