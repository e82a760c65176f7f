"""The kill switch and the cap of a task in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.models import Job, TaskControl
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import cap_task, made_changes, make_jobs, make_queue, pause_task
from tests.testapp.tasks import noop

from .conftest import text_of, url_of
from .forms import form_values, say_yes

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue/taskcontrol/"
ADD = "/admin/tenantqueue/taskcontrol/add/"


def held(count: int = 2) -> list[Job]:
    """Pause noop, and let some of its jobs come to its gate."""
    pause_task(noop.name)
    jobs = [noop.delay() for _ in range(count)]
    run_pending()
    return jobs


def states(jobs: list[Job]) -> list[str]:
    """Return the states of jobs, once what was left for after the commit is done."""
    run_commit_hooks("default")
    return [job.refresh().state for job in jobs]


def add(client: Client, **values: Any) -> Any:
    """Post the form of a new control."""
    return client.post(ADD, {"task": noop.name, "_save": "Save", **values}, follow=True)


def test_task_is_paused_by_a_new_control(admin_client: Client) -> None:
    response = add(admin_client, paused="on")

    assert "was added successfully" in text_of(response)
    assert "No task, method or finished job" not in text_of(response)
    job = noop.delay()
    assert run_pending() == []
    assert states([job]) == ["held"]


def test_operator_is_warned_when_the_name_is_not_known(admin_client: Client) -> None:
    response = add(admin_client, task="tests.testapp.tasks.nop", paused="on")

    assert "No task, method or finished job is named “tests.testapp.tasks.nop”" in text_of(response)
    assert TaskControl.objects.get().paused


def test_second_control_of_a_task_is_refused(admin_client: Client) -> None:
    add(admin_client)

    assert "already exists" in text_of(add(admin_client))


@pytest.mark.parametrize("count", [1, 8])
def test_list_asks_the_database_as_often_for_many(admin_client: Client, count: int) -> None:
    for number in range(count):
        cap_task(f"task{number}", 3, allow_unknown=True)

    with CaptureQueriesContext(connection) as queries:
        assert admin_client.get(LIST).status_code == 200

    assert len(queries) < 15


def test_list_says_how_many_stand_in_line(admin_client: Client) -> None:
    held(3)

    assert f"{noop.name} paused 0 3" in text_of(admin_client.get(LIST))


def test_task_is_resumed_and_capped_in_the_list(admin_client: Client) -> None:
    jobs = held()
    values = form_values(admin_client.get(LIST), "form-TOTAL_FORMS")
    values.pop("form-0-paused", None)

    response = admin_client.post(LIST, {**values, "form-0-num_slots": "7", "_save": "Save"})

    assert response.status_code == 302, text_of(response)
    control = TaskControl.objects.get()
    assert (control.paused, control.num_slots) == (False, 7)
    before, after = {"paused": True, "num_slots": None}, {"paused": False, "num_slots": 7}
    assert made_changes()[1:] == [("tune", before, after)]
    assert len(run_pending()) == len(jobs)


def test_rate_is_set_by_a_new_control_and_edited_in_the_list(admin_client: Client) -> None:
    add(admin_client, max_per_second="0.001", burst="2")
    jobs = [noop.delay() for _ in range(5)]
    assert len(run_pending()) == 2
    assert f"{noop.name} rate used up 0 3" in text_of(admin_client.get(LIST))

    values = form_values(admin_client.get(LIST), "form-TOTAL_FORMS")
    response = admin_client.post(LIST, {**values, "form-0-max_per_second": "", "_save": "Save"})

    assert response.status_code == 302, text_of(response)
    assert TaskControl.objects.get().max_per_second is None
    assert len(run_pending()) == 3
    assert set(states(jobs)) == {"success"}


def test_rate_below_the_least_is_refused(admin_client: Client) -> None:
    assert "greater than or equal to 0.0001" in text_of(add(admin_client, max_per_second="0"))


def test_operator_sees_a_conflict_when_somebody_was_faster(admin_client: Client) -> None:
    cap_task(noop.name, 3)
    values = form_values(admin_client.get(LIST), "form-TOTAL_FORMS")
    TaskControl.objects.update(num_slots=9)

    response = admin_client.post(LIST, {**values, "form-0-num_slots": "4", "_save": "Save"})

    assert "meanwhile another operator set it to 9" in text_of(response)
    assert TaskControl.objects.get().num_slots == 9


@pytest.mark.parametrize(("action", "before"), [("pause", False), ("resume", True)])
def test_chosen_tasks_are_switched(admin_client: Client, action: str, before: bool) -> None:
    control = TaskControl.objects.create(task=noop.name, paused=before)

    response = admin_client.post(
        LIST, {"action": f"{action}_selected", "_selected_action": control.pk}, follow=True
    )
    if action == "pause":
        response = say_yes(admin_client, response)

    assert "1 task control changed" in text_of(response)
    control.refresh_from_db()
    assert control.paused is not before


def test_task_runs_freely_when_its_control_is_deleted(admin_client: Client) -> None:
    jobs = held()
    control = TaskControl.objects.get()

    response = admin_client.post(url_of("taskcontrol", "delete", control.pk), {"post": "yes"})

    assert response.status_code == 302
    assert states(jobs) == ["ready"] * 2


def test_chosen_controls_are_deleted(admin_client: Client) -> None:
    jobs = held()
    control = TaskControl.objects.get()

    admin_client.post(
        LIST, {"action": "delete_selected", "_selected_action": control.pk, "post": "yes"}
    )

    assert states(jobs) == ["ready"] * 2


def test_control_is_not_deleted_without_the_permission(operator: Callable[..., Client]) -> None:
    control = cap_task(noop.name, 3)
    client = operator("view_taskcontrol", "change_taskcontrol")

    assert client.post(url_of("taskcontrol", "delete", control.pk)).status_code == 403
    page = client.get(url_of("taskcontrol", "change", control.pk))
    assert "deletelink" not in page.content.decode()


def test_name_of_a_control_stays(admin_client: Client) -> None:
    control = cap_task(noop.name, 3)
    page = url_of("taskcontrol", "change", control.pk)

    admin_client.post(page, {"task": "other", "num_slots": "5", "_save": "Save"})

    control.refresh_from_db()
    assert (control.task, control.num_slots) == (noop.name, 5)


def test_job_page_says_what_holds_it(admin_client: Client) -> None:
    (job, *_rest) = held()
    page = url_of("job", "change", job.pk)
    assert "Its task is paused." in text_of(admin_client.get(page))

    TaskControl.objects.update(paused=False, num_slots=0)
    assert "Its task may run 0 jobs at once." in text_of(admin_client.get(page))


def test_trouble_is_red_when_jobs_are_held_alone(admin_client: Client) -> None:
    pause_task(noop.name)
    grey = '<span class="tq-state tq-state-held">paused</span>'
    assert grey in admin_client.get(LIST).content.decode()

    held()

    assert grey.replace("held", "error") in admin_client.get(LIST).content.decode()


def test_full_task_is_marked_and_one_with_room_is_not(admin_client: Client) -> None:
    make_jobs(make_queue(), 1, state="running", task=noop.name, task_at=timezone.now())
    cap_task(noop.name, 1)
    full = '<span class="tq-state tq-state-scheduled">full</span>'
    content = admin_client.get(LIST).content.decode()
    assert "tq-state" not in content

    make_jobs(make_queue(), 1, state="held", held_by="task", session_key=None, task=noop.name)

    assert full in admin_client.get(LIST).content.decode()
