"""Retention rules in the admin, and pages of jobs without their values."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.models import Job
from tests.admin.conftest import text_of, url_of
from tests.admin.forms import form_values, inputs_of
from tests.factories import made_changes, make_job

pytestmark = pytest.mark.django_db
LIST = "/admin/tenantqueue_retention/retentionrule/"
ADD = f"{LIST}add/"
REMOVED: dict[str, Any] = {
    "args": {"__tenantqueue__": "removed"},
    "result_ref": "-",
    "errors": [{"class": "E", "message": "(removed by a retention rule)", "removed": True}],
}


def add(client: Client, **values: Any) -> str:
    blank = {"task": "", "state": "", "_save": "Save"}
    whose = inputs_of(values.pop("tenant", None))
    return text_of(client.post(ADD, {**blank, **whose, **values}, follow=True))


def test_rule_is_added_tuned_in_the_list_and_deleted(admin_client: Client) -> None:
    assert "was added successfully" in add(admin_client, tenant="acme", keep_days="9")

    values = form_values(admin_client.get(LIST), "form-0-keep_days")
    values |= {"form-0-keep_days": "8", "_save": "Save"}
    assert "was changed successfully" in text_of(admin_client.post(LIST, values, follow=True))
    rule = RetentionRule.objects.get()
    assert (rule.tenant, rule.keep_days) == ("acme", 8)
    page = admin_client.get(url_of("retentionrule", "change", rule.pk))
    assert 'name="tenant"' not in page.content.decode()
    admin_client.post(url_of("retentionrule", "delete", rule.pk), {"post": "yes"})

    assert not RetentionRule.objects.exists()
    assert [change[0] for change in made_changes()] == ["add", "tune", "delete"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "Give a number of days"),
        ({"keep_days": "0"}, "greater than or equal to 1"),
        (
            {"keep_days": "9", "task": "app.tasks.nothing"},
            "No task, method or finished job is named",
        ),
        ({"keep_days": "9", "task": "app.*"}, "was added successfully"),
    ],
)
def test_operator_is_told_what_is_wrong_with_a_new_rule(
    admin_client: Client, values: dict[str, str], said: str
) -> None:
    assert said in add(admin_client, **values)


def test_second_rule_for_the_same_jobs_is_refused(admin_client: Client) -> None:
    make_retention_rule(tenant="acme", keep_days=9)

    assert "already exists" in add(admin_client, tenant="acme", keep_days="8")


def test_empty_list_says_what_keeps_jobs(admin_client: Client) -> None:
    assert "HISTORY_KEEP_MONTHS" in text_of(admin_client.get(LIST))


def test_page_says_so_when_arguments_and_result_were_removed(admin_client: Client) -> None:
    job = make_job(state="success", **REMOVED)

    text = text_of(admin_client.get(url_of("job", "change", job.pk)))

    assert "They were removed by a retention rule." in text
    assert f"The result of job {job.pk} was removed by a retention rule." in text
    for part in ("arguments", "result"):
        address = reverse("admin:tenantqueue_job_value", args=[job.pk, part])
        assert admin_client.get(address).status_code == 404


def test_retry_and_enqueue_again_say_why_they_are_refused(admin_client: Client) -> None:
    job = make_job(state="error", **REMOVED)
    page = url_of("job", "change", job.pk)

    retried = text_of(admin_client.post(page, {"_retry": "1"}, follow=True))
    again = url_of("job", "changelist") + f"{job.pk}/again/"
    repeated = text_of(admin_client.get(again, follow=True))

    assert "cannot be retried: its arguments were removed by a retention rule" in retried
    assert "cannot be enqueued again: the arguments of job" in repeated
    assert Job.objects.get().state == "error"
