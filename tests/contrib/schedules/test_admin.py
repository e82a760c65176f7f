"""Schedules in the admin."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue import task
from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.firing import fire_schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.models import Change, Job
from django_tenantqueue.status.conditions import Look, problems
from tests.admin.conftest import text_of, url_of
from tests.admin.forms import form_values, inputs_of
from tests.factories import made_changes, make_queue
from tests.sample_tasks import keeps_all_secret, takes_any
from tests.testapp.tasks import echo, noop

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue_schedules/schedule/"
ADD = "/admin/tenantqueue_schedules/schedule/add/"
HOSTILE = "<script>alert(1)</script>"
CHOICES = {"kind": "cron", "catch_up": "skip", "overlap": "allow"}
EVERY = {"tenant_choice": "every"}


@task
def keep(password: str = "", plain: str = "") -> None:
    """Do nothing."""


def due(row: Schedule, **columns: Any) -> None:
    """Make a schedule due, as one whose tick came a second ago."""
    moment = timezone.now() - timedelta(seconds=1)
    Schedule.objects.filter(pk=row.pk).update(tick_at=moment, next_at=moment, **columns)


def add(client: Client, **values: str) -> Any:
    """Post the form of a new schedule."""
    data = {
        **CHOICES,
        **inputs_of(""),
        "name": "nightly",
        "task": noop.name,
        "expression": "0 3 * * *",
        "args": "[]",
        "kwargs": "{}",
        "jitter_seconds": "0",
        "enabled": "on",
        "_save": "Save",
    }
    return client.post(ADD, {**data, **values}, follow=True)


def edit(client: Client, row: Schedule, **values: str) -> Any:
    """Post the form of a schedule with other values."""
    page = client.get(url_of("schedule", "change", row.pk))
    form = page.context["adminform"].form
    shown = {name: field.value() for name, field in ((n, form[n]) for n in form.fields)}
    data = {name: "" if value is None or value is False else value for name, value in shown.items()}
    data = {name: "on" if value is True else value for name, value in data.items()}
    initial = {
        form.add_initial_prefix(name): data.get(name, "")
        for name in form.fields
        if form.fields[name].show_hidden_initial
    }
    if "tenant" in data:
        data |= inputs_of(row.tenant)
    posted = {**data, **initial, **values, "_save": "Save"}
    posted = {name: value for name, value in posted.items() if value is not None}
    return client.post(url_of("schedule", "change", row.pk), posted, follow=True)


def test_schedule_is_added_and_runs(admin_client: Client) -> None:
    response = add(admin_client, args='[{"__tenantqueue__": "scheduled_at"}]', task=echo.name)

    assert "was added successfully" in text_of(response), text_of(response)
    row = Schedule.objects.get()
    assert row.next_at > timezone.now()
    assert (row.source, row.enabled) == ("admin", True)
    due(row)
    assert fire_schedules("default") == 1
    assert Job.objects.get().args["args"][0]["__tenantqueue__"] == "datetime"
    change = Change.objects.get()
    assert (change.action, change.source, change.actor) == ("add", "admin", "admin")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"expression": "every now and then"}, "is not a cron expression"),
        ({"kind": "interval", "expression": "0 3 * * *"}, "is not an interval"),
        ({"kind": "once", "expression": "soon"}, "is not a date and time"),
        ({"time_zone": "Mars/Olympus"}, "is not a time zone"),
        ({"args": "{}"}, "Give a list"),
        ({"kwargs": "[]"}, "Give an object"),
        ({"args": "[1"}, "Enter a valid JSON"),
        ({"args": "[1, 2, 3]"}, "takes 0 positional|too many positional"),
        ({"kwargs": '{"nothing": 1}'}, "unexpected keyword argument"),
        ({"task": "os:system", "args": '["true"]'}, "may not be run"),
        ({"jitter_seconds": "-1"}, "greater than or equal to 0"),
        ({"priority": "99999"}, "less than or equal to"),
        ({**EVERY, "tenant": "acme"}, "Remove the name, or choose one tenant."),
        ({"tenant_choice": "one"}, "Give the name of the tenant, or choose"),
        ({**EVERY, "overlap": "skip"}, "Not possible for every tenant"),
        ({"starts_at": "2030-01-02T00:00", "ends_at": "2030-01-01T00:00"}, "before it starts"),
        ({"args": '[{"__tenantqueue__": "model"}]'}, "'model'} cannot be entered"),
        (
            {"kwargs": '{"deep": [{"__tenantqueue__": "model", "value": 1}]}'},
            "'model'} cannot be entered",
        ),
        ({"kwargs": '{"__tenantqueue__": "tenant"}'}, "the name is reserved"),
    ],
)
def test_schedule_is_refused_when_a_value_is_wrong(
    admin_client: Client, values: dict[str, str], said: str
) -> None:
    text = text_of(add(admin_client, **values)).replace("&#x27;", "'")

    assert any(part in text for part in said.split("|")), text
    assert not Schedule.objects.exists()


@pytest.mark.parametrize("name", ["starts_at", "ends_at"])
@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59", "0001-01-01T00:00:00"])
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_time_that_cannot_be_shown_everywhere_is_refused(
    admin_client: Client, name: str, moment: str, zone: str
) -> None:
    with override_settings(TIME_ZONE=zone):
        answer = add(admin_client, **{name: moment})

    assert "its year must be from 1900 to 8999" in text_of(answer)
    assert not Schedule.objects.exists()


def test_schedule_without_a_time_has_one_error(admin_client: Client) -> None:
    errors = add(admin_client, expression="").context["adminform"].form.errors

    assert errors == {"expression": ["This field is required."]}


def test_rows_of_no_tenant_and_of_every_one_are_told_apart(admin_client: Client) -> None:
    for name, tenant in {"one": "acme", "none": "", "every": None}.items():
        make_schedule(name, noop, "0 3 * * *", tenant=tenant)

    for choice in ("none", "every"):
        listed = admin_client.get(LIST, {"tenant_choice": choice}).context["cl"].result_list
        assert [row.name for row in listed] == [choice]
    stream = admin_client.get(f"{LIST}export/csv/")
    text = b"".join(stream.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["name"]: row["tenant_choice"] for row in rows} == {
        name: name for name in ("one", "none", "every")
    }


def test_second_of_a_name_is_refused(admin_client: Client) -> None:
    add(admin_client)

    assert "already exists" in text_of(add(admin_client))


def test_operator_is_warned_when_the_task_is_not_known(admin_client: Client) -> None:
    assert "has no task named “nowhere.task”" in text_of(add(admin_client, task="nowhere.task"))
    assert "no next run" in text_of(
        add(admin_client, name="past", kind="once", expression="2020-01-01 00:00")
    )


def test_edit_counts_by_the_next_tick(admin_client: Client) -> None:
    row = make_schedule("nightly", noop, "0 3 1 1 *")

    response = edit(admin_client, row, kind="interval", expression="1m")

    assert "was changed successfully" in text_of(response), text_of(response)
    row.refresh_from_db()
    assert row.next_at < timezone.now() + timedelta(minutes=1)
    assert set(Change.objects.order_by("-pk")[0].after) == {"kind", "expression"}


def test_conflict_is_shown_when_another_operator_was_faster(admin_client: Client) -> None:
    row = make_schedule("nightly", noop, "0 3 * * *")
    page = admin_client.get(url_of("schedule", "change", row.pk))
    values = form_values(page, "expression")
    Schedule.objects.update(expression="0 5 * * *")
    data = {**values, **CHOICES, **{f"initial-{n}": v for n, v in CHOICES.items()}}
    data |= {"args": "[]", "kwargs": "{}", "expression": "0 4 * * *", "_save": "Save"}
    for name in ("_run_now",):
        data.pop(name, None)

    response = admin_client.post(url_of("schedule", "change", row.pk), data)

    assert "meanwhile another operator set it to 0 5 * * *" in text_of(response)
    assert Schedule.objects.get().expression == "0 5 * * *"


def test_secret_arguments_are_masked_and_kept(admin_client: Client) -> None:
    row = make_schedule("s", keep, "0 3 * * *", kwargs={"password": "hush-1", "plain": "a"})
    page = admin_client.get(url_of("schedule", "change", row.pk))
    assert "hush-1" not in page.content.decode()
    masked = '{"password": "••••••", "plain": "a"}'

    edit(admin_client, row, kwargs=masked, priority="7")
    row.refresh_from_db()
    assert (row.kwargs, row.priority) == ({"password": "hush-1", "plain": "a"}, 7)
    refused = edit(admin_client, row, kwargs='{"password": "••••••", "plain": "b"}')
    assert "hides a value" in text_of(refused)
    edit(admin_client, row, kwargs='{"password": "hush-2", "plain": "b"}')

    row.refresh_from_db()
    assert row.kwargs == {"password": "hush-2", "plain": "b"}
    for form in ("csv", "jsonl"):
        stream = admin_client.get(f"{LIST}export/{form}/")
        assert "hush" not in b"".join(stream.streaming_content).decode()  # type: ignore[attr-defined]
    assert "hush" not in str(list(Change.objects.values()))


def hushed(**columns: Any) -> Schedule:
    """Make a schedule whose task declares all arguments as secret."""
    return make_schedule("s", keeps_all_secret, "0 3 * * *", args=["hush-1"], **columns)


@pytest.mark.parametrize("name", [echo.name, "shop.tasks.unknown"])
def test_another_task_does_not_get_hidden_arguments(admin_client: Client, name: str) -> None:
    row = hushed()

    refused = edit(admin_client, row, task=name)
    row.refresh_from_db()
    assert row.task == keeps_all_secret.name
    assert "Some arguments are hidden. Enter them again for another task." in text_of(refused)
    assert "hush-1" not in refused.content.decode()
    edit(admin_client, row, task=name, args='["new"]')

    row.refresh_from_db()
    assert (row.task, row.args) == (name, ["new"])


def test_another_task_keeps_arguments_that_are_shown(admin_client: Client) -> None:
    row = make_schedule("s", echo, "0 3 * * *", args=["plain"])

    edit(admin_client, row, task=keep.name)

    row.refresh_from_db()
    assert (row.task, row.args) == (keep.name, ["plain"])


def test_arguments_are_hidden_when_the_task_is_not_known_here(
    admin_client: Client, operator: Callable[..., Client]
) -> None:
    row = hushed(kwargs={"named": "hush-2"})
    Schedule.objects.update(task="shop.tasks.gone")

    for client in (admin_client, operator("view_schedule")):
        page = client.get(url_of("schedule", "change", row.pk)).content.decode()
        assert "hush" not in page
        assert page.count("••••••") >= 2
    edit(admin_client, row, priority="7")

    row.refresh_from_db()
    assert (row.args, row.kwargs, row.priority) == (["hush-1"], {"named": "hush-2"}, 7)


def test_conflict_does_not_tell_hidden_values(admin_client: Client) -> None:
    row = make_schedule("s", keep, "0 3 * * *", kwargs={"password": "hush-1", "plain": "a"})
    shown = form_values(admin_client.get(url_of("schedule", "change", row.pk)), "initial-name")
    Schedule.objects.update(kwargs={"password": "hush-2", "plain": "b"})
    data = {**shown, "kwargs": '{"password": "mine", "plain": "c"}', "_save": "Save"}
    data.pop("_run_now", None)

    refused = admin_client.post(url_of("schedule", "change", row.pk), data)

    text = refused.content.decode()
    assert "another operator set it to" in text
    assert "hush" not in text
    assert Schedule.objects.get().kwargs["plain"] == "b"


def test_job_is_enqueued_when_run_now_is_pressed(admin_client: Client) -> None:
    row = make_schedule("nightly", noop, "0 3 * * *", enabled=False)

    response = admin_client.post(
        url_of("schedule", "change", row.pk), {"_run_now": "1"}, follow=True
    )

    job = Job.objects.get()
    assert f"1 job was enqueued: #{job.pk}" in text_of(response)
    assert f"/job/{job.pk}/change/" in response.content.decode()
    assert made_changes()[-1][0] == "run_now"


def test_chosen_schedules_run_now_together_or_not_at_all(admin_client: Client) -> None:
    make_queue("", "full", max_waiting=0)
    rows = [make_schedule("a", noop, "0 3 * * *"), make_schedule("b", noop, "0 3 * * *")]
    data = {"action": "run_selected", "_selected_action": [row.pk for row in rows]}

    assert "2 jobs were enqueued" in text_of(admin_client.post(LIST, data, follow=True))
    assert Job.objects.count() == 2
    Schedule.objects.filter(pk=rows[1].pk).update(queue="full")
    assert "Nothing was enqueued" in text_of(admin_client.post(LIST, data, follow=True))
    assert Job.objects.count() == 2


def test_schedules_are_switched_in_the_list_and_by_actions(admin_client: Client) -> None:
    row = make_schedule("nightly", noop, "0 3 * * *")
    values = form_values(admin_client.get(LIST), "form-TOTAL_FORMS")
    values.pop("form-0-enabled")

    admin_client.post(LIST, {**values, "_save": "Save"})
    assert not Schedule.objects.get().enabled
    for action, enabled in (("enable", True), ("disable", False)):
        data = {"action": f"{action}_selected", "_selected_action": row.pk}
        admin_client.post(LIST, data)
        assert Schedule.objects.get().enabled is enabled
    assert [entry[0] for entry in made_changes()[1:]] == ["disable", "enable", "disable"]


def test_schedule_of_the_code_can_only_be_enabled_and_disabled(admin_client: Client) -> None:
    row = make_schedule("nightly", noop, "0 3 * * *", kwargs={})
    Schedule.objects.update(source="code")

    page = admin_client.get(url_of("schedule", "change", row.pk))
    assert set(page.context["adminform"].form.fields) == {"enabled"}
    data = {"initial-enabled": "True", "expression": "* * * * *", "_save": "Save"}
    admin_client.post(url_of("schedule", "change", row.pk), data)

    row.refresh_from_db()
    assert (row.enabled, row.expression) == (False, "0 3 * * *")
    assert (
        admin_client.post(url_of("schedule", "delete", row.pk), {"post": "yes"}).status_code == 403
    )
    admin_client.post(
        LIST, {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
    )
    assert Schedule.objects.exists()


def test_list_tells_of_late_and_failing_schedules(admin_client: Client) -> None:
    late = make_schedule("late-one", noop, "0 3 * * *")
    failing = make_schedule("failing-one", noop, "0 3 * * *")
    make_schedule("healthy-one", noop, "0 3 * * *")
    due(failing, task=HOSTILE)
    fire_schedules("default")
    long_ago = timezone.now() - timedelta(minutes=2)
    Schedule.objects.filter(pk=late.pk).update(tick_at=long_ago, next_at=long_ago)

    page = admin_client.get(LIST)
    assert "UnknownTask: no task is named" in text_of(page)
    assert HOSTILE not in page.content.decode()
    for trouble, name in (("late", "late-one"), ("failing", "failing-one")):
        text = text_of(admin_client.get(f"{LIST}?trouble={trouble}"))
        assert name in text
        assert "healthy-one" not in text
    assert [p.text for p in problems(Look("default")) if p.where == "schedules"] == [
        "late schedules: – / late-one",
        "failing schedules: – / failing-one",
    ]
    assert not [p for p in problems(Look("default", ["acme"])) if p.where == "schedules"]


@pytest.mark.parametrize("count", [1, 8])
def test_list_asks_the_database_as_often_for_many(admin_client: Client, count: int) -> None:
    for number in range(count):
        make_schedule(f"s{number}", noop, "0 3 * * *")

    with CaptureQueriesContext(connection) as queries:
        assert admin_client.get(LIST).status_code == 200

    assert len(queries) < 15


def test_preview_shows_the_next_runs(admin_client: Client) -> None:
    values = {"kind": "once", "expression": "2090-07-01 12:00", "time_zone": "Europe/Berlin"}
    found = admin_client.get(f"{LIST}preview/", values).json()
    assert found == {"runs": ["Sat 2090-07-01 12:00:00 CEST"]}

    values = {"kind": "interval", "expression": "1h", "starts_at": "2090-01-01T00:30"}
    assert len(admin_client.get(f"{LIST}preview/", values).json()["runs"]) == 5
    values = {"kind": "cron", "expression": HOSTILE}
    assert "is not a cron expression" in admin_client.get(f"{LIST}preview/", values).json()["error"]


def test_pages_need_permissions(operator: Callable[..., Client]) -> None:
    row = make_schedule(HOSTILE, keep, "0 3 * * *", kwargs={"password": "hush-1"})
    page = url_of("schedule", "change", row.pk)

    stranger = operator("view_job")
    assert stranger.get(LIST).status_code == stranger.get(page).status_code == 403
    assert stranger.get(f"{LIST}preview/").status_code == 403
    viewer = operator("view_schedule")
    shown = viewer.get(page)
    assert shown.status_code == 200
    assert "hush" not in shown.content.decode()
    assert HOSTILE not in shown.content.decode()
    assert HOSTILE not in viewer.get(LIST).content.decode()
    assert "_run_now" not in shown.content.decode()
    assert viewer.post(page, {"_run_now": "1"}).status_code == 403
    viewer.post(LIST, {"action": "run_selected", "_selected_action": row.pk})
    assert not Job.objects.exists()


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "text",
    [
        *(nested(levels) for levels in (200, 500, 900, 2000, 100_000)),
        *('["\\u0000"]', '["\\ud800"]', '[{"\\u0000": 1}]', '[{"\\ud800": 1}]', "[NaN]"),
        *("[1e999]", f"[{'9' * 5000}]", '[{"__tenantqueue__": "decimal", "value": "x"}]'),
    ],
    ids=lambda text: text[:30],
)
def test_arguments_that_cannot_be_stored_are_errors_of_the_form(
    admin_client: Client, text: str
) -> None:
    row = make_schedule("old", echo, "0 3 * * *", args=[1])

    add(admin_client, task=echo.name, args=text)
    add(admin_client, task=echo.name, kwargs=f'{{"value": {text}}}')
    edit(admin_client, row, args=text)

    assert Schedule.objects.get().args == [1]


@pytest.mark.parametrize("name", ["\\u0000", "\\ud800"])
def test_name_of_an_argument_that_cannot_be_stored_is_an_error_of_the_form(
    admin_client: Client, name: str
) -> None:
    answer = add(admin_client, task=takes_any.name, args='["a"]', kwargs=f'{{"{name}": "b"}}')

    assert "which PostgreSQL cannot store" in text_of(answer) or "surrogate" in text_of(answer)
    assert not Schedule.objects.exists()


def test_row_of_an_unknown_database_is_an_error_of_the_form(admin_client: Client) -> None:
    model = {"__tenantqueue__": "model", "model": "auth.user", "value": 1, "using": "nowhere"}
    row = make_schedule("old", echo, "0 3 * * *")
    Schedule.objects.filter(pk=row.pk).update(args=[model])
    row.refresh_from_db()

    edit(admin_client, row, queue="other")  # it shows an error, not status 500

    assert Schedule.objects.get().queue != "other"
