"""Jobs of the package's own tasks are made by the package alone, whatever way somebody tries."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from django.utils import timezone
from psycopg.types.json import Jsonb

from django_tenantqueue import bulk, delayed
from django_tenantqueue.calls.sources import INTERNAL, describe_named, find_task, registered_tasks
from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.delivery import enqueue_test
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.firing import fire_schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.schedules.services import run_schedules, tune_schedule
from django_tenantqueue.exceptions import NotAllowed
from django_tenantqueue.models import Change, Job
from django_tenantqueue.operations.again import enqueue_again
from django_tenantqueue.operations.bulk_actions import ACTIONS
from django_tenantqueue.states import State
from django_tenantqueue.status.task_names import is_known
from django_tenantqueue.testing import run_pending
from tests.admin.conftest import operator as operator
from tests.admin.conftest import text_of, url_of
from tests.contrib.schedules.test_admin import add, due, edit
from tests.contrib.schedules.test_import_beat import beat as beat
from tests.contrib.schedules.test_import_beat import cron
from tests.contrib.schedules.test_import_beat import row as beat_row
from tests.factories import make_jobs, make_queue, states_of
from tests.testapp.tasks import add as add_task
from tests.testapp.tasks import noop

NEEDS = "alerts http schedules"
pytestmark = pytest.mark.django_db
DELIVER = "django_tenantqueue.alerts.deliver"
OWN = (
    *(f"django_tenantqueue.bulk.{action}" for action in ACTIONS),
    DELIVER,
    "django_tenantqueue.http.post_end",
)
CALLABLE = (
    "django_tenantqueue.bulk:start",
    "django_tenantqueue.operations.control:delete_finished",
    "django_tenantqueue:task",
)
FORGED = {
    "filters": {"tenant": "globex"},
    "values": {},
    "user_id": None,
    "actor": ["root", "admin"],
}
REFUSED = "is a part of django_tenantqueue itself"


def sees_acme(user: Any) -> list[str] | None:
    return None if user.is_superuser else ["acme"]


LIMITED = override_settings(
    TENANTQUEUE={"VISIBLE_TENANTS": "tests.test_internal_tasks.sees_acme", "CALLABLES": ["*"]}
)


def stored_schedule(task: str, **columns: Any) -> Schedule:
    """Return a schedule that was written past all checks, as one of an earlier version."""
    row = make_schedule("nightly", noop, "0 3 * * *", tenant="acme")
    Schedule.objects.filter(pk=row.pk).update(task=task, **columns)
    row.refresh_from_db()
    return row


def edit_arguments(job: Job, **changes: Any) -> None:
    """Change keyword arguments of a job that waits, with raw SQL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenantqueue_job SET args = jsonb_set(args, '{kwargs}', args->'kwargs' || %s) "
            "WHERE id = %s",
            [Jsonb(changes), job.pk],
        )


def test_every_own_task_but_http_job_is_internal() -> None:
    own = {name for name in registered_tasks() if name.startswith("django_tenantqueue.")}

    assert own == {"django_tenantqueue.http.http_job"}


@pytest.mark.parametrize("name", [*OWN, *CALLABLE])
def test_no_name_finds_a_task_of_the_package(name: str) -> None:
    with override_settings(TENANTQUEUE={"CALLABLES": ["*"], "API": {"TASKS": ["*"]}}):
        with pytest.raises(NotAllowed, match=REFUSED):
            describe_named(name)
        with pytest.raises(NotAllowed, match=REFUSED):
            find_task(name)
        with pytest.raises(ValidationError, match=REFUSED):
            make_schedule("nightly", name, "0 3 * * *")
        row = make_schedule("other", noop, "0 3 * * *")
        with pytest.raises(ValidationError, match=REFUSED):
            tune_schedule(row.pk, task=name)

    assert list(Schedule.objects.values_list("task", flat=True)) == [noop.name]
    assert not Job.objects.exists()


def test_function_of_the_package_cannot_be_delayed() -> None:
    with override_settings(TENANTQUEUE={"CALLABLES": ["*"]}), pytest.raises(NotAllowed):
        delayed(bulk.start)


@LIMITED
@pytest.mark.parametrize("name", ["django_tenantqueue.bulk.delete", DELIVER, CALLABLE[1]])
def test_schedule_form_refuses_the_task(operator: Callable[..., Client], name: str) -> None:
    client = operator("view_schedule", "add_schedule", "change_schedule")
    row = make_schedule("mine", noop, "0 3 * * *", tenant="acme")

    added = add(client, tenant="acme", task=name)
    edited = edit(client, row, task=name)

    assert REFUSED in text_of(added)
    assert REFUSED in text_of(edited)
    assert list(Schedule.objects.values_list("task", flat=True)) == [noop.name]


@LIMITED
@pytest.mark.parametrize("name", ["django_tenantqueue.bulk.delete", DELIVER])
def test_stored_schedule_of_the_task_fails_when_it_fires_or_is_run(
    operator: Callable[..., Client], name: str
) -> None:
    client = operator("view_schedule", "add_schedule", "change_schedule")
    theirs = make_jobs(make_queue("globex"), 2, state=State.SUCCESS)
    row = stored_schedule(name, kwargs=FORGED)
    due(row)

    with pytest.raises(NotAllowed, match=REFUSED):
        run_schedules([row.pk])
    pressed = client.post(
        url_of("schedule", "changelist"),
        {"action": "run_selected", "_selected_action": [row.pk]},
        follow=True,
    )
    fire_schedules("default")
    run_pending()

    assert REFUSED in text_of(pressed)
    row.refresh_from_db()
    assert REFUSED in row.last_error
    assert set(states_of(theirs).values()) == {State.SUCCESS}
    assert not Job.objects.filter(source_type=INTERNAL).exists()


@pytest.mark.parametrize("dry_run", [True, False])
def test_import_of_beat_leaves_the_task_out(
    beat: list[SimpleNamespace], capsys: Any, dry_run: bool
) -> None:
    beat += [beat_row("deletes", task=OWN[-3], args="[]", crontab=cron())]

    with pytest.raises(SystemExit):
        call_command("tenantqueue", "schedules", "import-beat", dry_run=dry_run)

    assert REFUSED in capsys.readouterr().err
    assert not Schedule.objects.exists()


def test_own_job_is_not_enqueued_again(admin_client: Client) -> None:
    make_jobs(make_queue("globex"), 1, state=State.ERROR)
    job = bulk.start("retry", {})

    page = admin_client.get(url_of("job", "again", job.pk))
    posted = admin_client.post(url_of("job", "again", job.pk), {"kwargs": "{}", "args": "[]"})
    with pytest.raises(NotAllowed, match="is an internal task of django_tenantqueue"):
        enqueue_again(job.refresh(), (), FORGED)

    assert (page.status_code, posted.status_code) == (403, 403)
    assert Job.objects.filter(source_type=INTERNAL).count() == 1


@pytest.mark.parametrize(
    "changes",
    [{"user_id": None}, {"filters": {}}, {"actor": ["root", "admin"]}, {"signature": "forged"}],
)
def test_bulk_job_with_edited_arguments_does_nothing(changes: dict[str, Any]) -> None:
    user = User.objects.create_user("anna")
    ours = make_jobs(make_queue("acme"), 2, state=State.SUCCESS)
    theirs = make_jobs(make_queue("globex"), 2, state=State.SUCCESS)
    with LIMITED:
        job = bulk.start("delete", {"tenant": "acme"}, user=user)
        edit_arguments(job, **changes)
        run_pending()
    job.refresh()

    assert (job.state, job.attempt) == (State.ERROR, 1)
    assert "nothing was done" in job.last_error["message"]
    assert set(states_of(ours + theirs).values()) == {State.SUCCESS}
    assert not Change.objects.exists()


@pytest.mark.parametrize("name", ["django_tenantqueue.bulk.delete", DELIVER])
@pytest.mark.parametrize("source_type", ["task", INTERNAL])
def test_row_that_raw_sql_made_does_nothing(name: str, source_type: str) -> None:
    theirs = make_jobs(make_queue("globex"), 2, state=State.SUCCESS)
    call = {"args": [], "kwargs": {**FORGED, "signature": "x"}}
    (made,) = make_jobs(
        make_queue("acme"),
        1,
        task=name,
        source_type=source_type,
        source_method=name,
        args=call,
        created_by=str(User.objects.create_superuser("root").pk),
    )

    run_pending()

    job = Job.objects.get(pk=made)
    assert (job.state, job.attempt) == (State.ERROR, 1)
    assert set(states_of(theirs).values()) == {State.SUCCESS}


def test_delivery_with_edited_arguments_sends_nothing(caplog: Any) -> None:
    mine = make_alert_rule("mine", "queue_late", log=True, tenant="acme")
    theirs = make_alert_rule("theirs", "queue_late", log=True, tenant="globex")
    (job,) = enqueue_test("default", mine)
    edit_arguments(job, rule_id=theirs.pk)

    run_pending()

    job.refresh()
    assert (job.state, job.attempt) == (State.ERROR, 1)
    assert "nothing was done" in job.last_error["message"]
    assert "This is a test" not in caplog.text


def test_signature_is_of_one_task_and_is_masked(admin_client: Client) -> None:
    finished = make_jobs(make_queue("acme"), 2, state=State.ERROR)
    job = bulk.start("retry", {}).refresh()
    signature = job.args["kwargs"]["signature"]
    page = admin_client.get(url_of("job", "change", job.pk)).content.decode()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenantqueue_job SET task = %s, source_method = %s WHERE id = %s",
            ["django_tenantqueue.bulk.delete", "django_tenantqueue.bulk.delete", job.pk],
        )

    run_pending()

    assert signature not in page
    assert job.refresh().state == State.ERROR
    assert set(states_of(finished).values()) == {State.ERROR}


def test_bulk_job_of_another_secret_key_says_so() -> None:
    job = bulk.start("retry", {})

    with override_settings(SECRET_KEY="another"):
        run_pending()

    assert "another SECRET_KEY" in job.refresh().last_error["message"]


def test_bulk_job_runs_after_the_key_was_rotated() -> None:
    job = bulk.start("retry", {})

    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["only-for-tests"]):
        run_pending()

    assert job.refresh().state == State.SUCCESS


def test_bulk_job_of_a_user_who_was_deactivated_does_nothing() -> None:
    user = User.objects.create_user("anna")
    failed = make_jobs(make_queue("acme"), 2, state=State.ERROR)
    job = bulk.start("retry", {}, user=user)
    User.objects.update(is_active=False)

    run_pending()

    assert "is not active any more" in job.refresh().last_error["message"]
    assert set(states_of(failed).values()) == {State.ERROR}


def test_callback_of_a_job_is_not_made_by_hand() -> None:
    (made,) = make_jobs(
        make_queue("acme"),
        1,
        task=OWN[-1],
        source_type=INTERNAL,
        source_method=OWN[-1],
        is_async=True,
        args={"args": ["https://example.com/"]},
    )

    run_pending()

    assert "was deleted" in Job.objects.get(pk=made).last_error["message"]


def test_user_task_still_is_scheduled_and_run(admin_client: Client) -> None:
    add(admin_client, task=add_task.name, args="[1, 2]")

    (job,) = run_schedules([Schedule.objects.get().pk])
    run_pending()

    assert job.refresh().result == 3
    assert job.created_at <= timezone.now()


def test_own_tasks_are_known_where_jobs_are_filtered_routed_and_paused(
    admin_client: Client,
) -> None:
    suggested = admin_client.get(url_of("job", "changelist")).content.decode()
    make_queue("acme", "heavy")
    values = {"pattern": OWN[-1], "tenant": "acme", "queue": "heavy"}
    routed = admin_client.post(url_of("routing", "add"), values, follow=True)

    for name in OWN:
        assert name in suggested
        assert is_known("default", name)
    assert "was added successfully" in text_of(routed)
    assert "No task, method or finished job is named" not in text_of(routed)
