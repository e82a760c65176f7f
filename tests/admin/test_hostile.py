"""Hostile strings in every field come out escaped, on every page."""

from __future__ import annotations

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from django_tenantqueue.admin.links import task_url, tenant_url
from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.models import Change, Worker
from django_tenantqueue.operations import control
from tests.factories import make_duty, make_job, make_worker

from .conftest import url_of
from .test_visible_tenants import FLEET, addresses, body, fill

NEEDS = "alerts api fireworq retention routing schedules"
pytestmark = pytest.mark.django_db
HOSTILE = "a'b\"><script>boom()</script>&lt;i>%s%(x)s{0}{{x}}\\<!--"
RAW = ("<script>boom", '"><script', "'b\">")
"""What a browser would run, or read as the end of an attribute."""


@pytest.mark.heavy
def test_no_page_has_a_hostile_string_as_it_is(admin_client: Client) -> None:
    with override_settings(TENANTQUEUE={}):
        rows = fill(HOSTILE)
        worker = make_worker(name=HOSTILE, host=HOSTILE, tenants=[HOSTILE], last_error=HOSTILE)
        make_job(rows.queue, state="running", worker_id=worker.pk, progress_message=HOSTILE)
        make_duty(worker=HOSTILE, outcome=HOSTILE, error=HOSTILE)
        control.change_priority([rows.job.pk], 7)
        rule = make_retention_rule(tenant=HOSTILE, task=HOSTILE, keep_days=9)
        pages = [
            *addresses(rows, rows),
            *(url_of(model, "changelist") for model in FLEET),
            url_of("retentionrule", "change", rule.pk),
            url_of("worker", "change", Worker.objects.get().pk),
            url_of("job", "change", rows.failed.pk),
            url_of("job", "changelist") + f"{rows.job.pk}/again/",
            url_of("change", "change", Change.objects.latest("pk").pk),
            f"{reverse('admin:tenantqueue_failures')}?task={HOSTILE}.failing",
            tenant_url(HOSTILE),
            task_url(f"{HOSTILE}.failing"),
            task_url(f"{HOSTILE}.failing", tenant=HOSTILE),
        ]
        seen = 0
        found: list[tuple[str, str]] = []

        for address in dict.fromkeys(pages):
            response = admin_client.get(address, follow=True)
            content = body(response)
            if response["Content-Type"].startswith("text/html"):
                seen += "boom()" in content
                found += [(address, raw) for raw in RAW if raw in content]

    assert found == []
    assert seen > 30


def test_questions_and_messages_escape_hostile_names(admin_client: Client) -> None:
    with override_settings(TENANTQUEUE={}):
        rows = fill(HOSTILE)
        answers = [
            admin_client.post(
                url_of(model, "changelist"),
                {"action": action, "_selected_action": pk, "index": "0", **sent},
                follow=True,
            )
            for sent in ({}, {"_apply": "1"})
            for model, action, pk in (
                ("tenantqueue", "pause_selected", rows.queue.pk),
                ("job", "cancel_selected", rows.job.pk),
                ("session", "pause_selected", rows.session.pk),
                ("userlimit", "pause_selected", rows.user.pk),
                ("concurrentjobmonitor", "cancel_selected", rows.monitor.pk),
            )
        ]

    contents = [body(answer) for answer in answers]
    assert all("boom()" in content for content in contents[:5])
    assert [raw for raw in RAW for content in contents if raw in content] == []
