"""Links of a job's page: each for those who may view what it leads to, else plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from django_tenantqueue.models import Job, Session, UserLimit
from django_tenantqueue.states import State
from tests.factories import make_job, make_queue, make_worker
from tests.operations.monitors import start
from tests.testapp.models import Plain, Report

from .conftest import text_of, url_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Job:
    gate = {"tenant": "acme", "key": "ledger", "gate_key": "acme/ledger"}
    Session.objects.create(kind="serial", **gate)
    UserLimit.objects.create(kind="limit_user", **gate)
    worker = make_worker(name="web-7:1")
    return make_job(
        make_queue("acme"),
        state=State.RUNNING,
        worker_id=worker.pk,
        session_key="acme/ledger",
        limit_user="acme/ledger",
        monitor_id=start().pk,
    )


LINKED: dict[str, Callable[[Job], int | None]] = {
    "tenantqueue": lambda job: job.queue_id,
    "worker": lambda job: job.worker_id,
    "session": lambda job: Session.objects.get(kind="serial").pk,
    "userlimit": lambda job: UserLimit.objects.get().pk,
    "concurrentjobmonitor": lambda job: job.monitor_id,
}


@pytest.mark.parametrize("model", LINKED)
def test_link_needs_the_permission_to_view(
    operator: Callable[..., Client], job: Job, model: str
) -> None:
    url = f'href="{url_of(model, "change", LINKED[model](job))}"'
    page = url_of("job", "change", job.pk)

    with_it = operator("view_job", f"view_{model}").get(page)
    without = operator("view_job").get(page)

    assert url in with_it.content.decode()
    assert url not in without.content.decode()
    for text in ("acme / default", "web-7:1", "acme/ledger", f"#{job.monitor_id}"):
        assert text in text_of(without)


def test_causes_link_only_what_the_user_may_view(operator: Callable[..., Client]) -> None:
    waiting = make_job(make_queue("acme", paused=True))
    url = f'href="{url_of("tenantqueue", "change", waiting.queue_id)}"'
    page = url_of("job", "change", waiting.pk)

    assert operator("view_job", "view_tenantqueue").get(page).content.decode().count(url) == 2
    plain = operator("view_job").get(page)
    assert url not in plain.content.decode()
    assert "queue: acme / default" in text_of(plain)


def source_page(client: Client, instance: Any, **columns: Any) -> str:
    job = make_job(
        source_type=instance._meta.label_lower,
        source_id=str(instance.pk),
        source_method="execute",
        **columns,
    )
    return client.get(f"/office/tenantqueue/job/{job.pk}/change/").content.decode()


@pytest.mark.urls("tests.admin.office_urls")
def test_source_object_links_to_its_page_in_the_admin(admin_client: Client) -> None:
    report = Report.objects.create(title="Sales")
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.filter(codename="view_job"))
    client = Client()
    client.force_login(viewer)
    url = reverse("admin:testapp_report_change", args=[report.pk], current_app="office")

    assert f'<a href="{url}">testapp.report {report.pk}</a> execute' in source_page(
        admin_client, report
    )
    assert f"testapp.report {report.pk} execute" in source_page(client, report)
    assert url not in source_page(client, report)


def test_source_object_without_a_page_is_plain_text(admin_client: Client) -> None:
    plain = Plain.objects.create(title="x")
    job = make_job(source_type="testapp.plain", source_id=str(plain.pk), source_method="execute")

    text = text_of(admin_client.get(url_of("job", "change", job.pk)))

    assert f"testapp.plain {plain.pk} execute" in text
