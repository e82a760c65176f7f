"""Jobs on the admin pages of users' own models."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_tenantqueue.states import State
from tests.factories import make_job, make_jobs, make_queue
from tests.testapp.models import Plain, Report

from .conftest import text_of

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.admin.office_urls")]
LIST = "/office/testapp/report/"


def change_page(obj: Report | Plain, site: str = "office") -> str:
    return f"/{site}/testapp/{obj._meta.model_name}/{obj.pk}/change/"


def of(obj: Report | Plain, **columns: Any) -> dict[str, Any]:
    return {"source_type": obj._meta.label_lower, "source_id": str(obj.pk), **columns}


@pytest.fixture
def report(db: None) -> Report:
    return Report.objects.create(title="Sales")


def test_page_of_an_object_shows_its_jobs(admin_client: Client, report: Report) -> None:
    now = timezone.now()
    job = make_job(
        **of(report, state=State.SUCCESS, task="testapp.Report.execute"),
        created_at=now - timedelta(minutes=3),
        started_at=now - timedelta(seconds=12),
        finished_at=now,
    )
    running = make_job(**of(report, state=State.RUNNING, started_at=now - timedelta(minutes=2)))
    other = make_job(**of(Report.objects.create(title="other")))

    response = admin_client.get(change_page(report))

    html, text = response.content.decode(), text_of(response)
    assert f"#{job.pk} testapp. Report. execute success 3 min ago 12 s" in text
    assert re.search(rf"#{running.pk} .*? running .*? 2 min…", text)
    assert f'href="/office/tenantqueue/job/{job.pk}/change/"' in html
    assert f"#{other.pk}" not in text
    assert "django_tenantqueue/admin.css" in html


def test_page_shows_the_newest_twenty_and_says_so(admin_client: Client, report: Report) -> None:
    ids = make_jobs(make_queue(), 21, **of(report))

    text = text_of(admin_client.get(change_page(report)))

    assert re.findall(r"#(\d+)", text) == [str(job_id) for job_id in ids[:0:-1]]
    assert "Only the newest 20 are shown." in text


def test_page_says_when_an_object_has_no_jobs(admin_client: Client, report: Report) -> None:
    assert "It has no jobs." in text_of(admin_client.get(change_page(report)))


def test_new_object_has_no_section(admin_client: Client) -> None:
    assert "Jobs" not in text_of(admin_client.get(f"{LIST}add/")).partition("Add report")[2]


def test_object_is_saved_as_without_the_mixin(admin_client: Client, report: Report) -> None:
    admin_client.post(change_page(report), {"title": "New", "rows": 3})

    report.refresh_from_db()
    assert (report.title, report.rows) == ("New", 3)


def test_jobs_stand_where_the_fieldsets_place_them(admin_client: Client) -> None:
    plain = Plain.objects.create(title="plain")
    job = make_job(**of(plain))

    response = admin_client.get(change_page(plain))

    text, html = text_of(response), response.content.decode()
    assert "own.css" in html
    assert "django_tenantqueue/admin.css" in html
    assert text.count(f"#{job.pk}") == 1
    assert text.index("First") < text.index(f"#{job.pk}") < text.index("Then")


def test_list_shows_the_newest_job_of_each_row(admin_client: Client, report: Report) -> None:
    make_job(**of(report, state=State.ERROR))
    newest = make_job(**of(report, state=State.SUCCESS))
    Report.objects.create(title="without")

    html = admin_client.get(LIST).content.decode()

    cells = re.findall(r'<td class="field-last_job">(.*?)</td>', html)
    assert len(cells) == 2
    assert [f"/office/tenantqueue/job/{newest.pk}/change/" in cell for cell in cells] == [
        False,
        True,
    ]
    assert "tq-state-success" in cells[1]


def test_list_is_saved_as_without_the_mixin(admin_client: Client, report: Report) -> None:
    form = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": report.pk}
    admin_client.post(LIST, {**form, "form-0-rows": 7, "_save": "Save"})

    report.refresh_from_db()
    assert report.rows == 7


def test_queries_of_the_list_are_as_many_when_it_has_more_rows(admin_client: Client) -> None:
    counts = []
    for _ in range(2):
        for _ in range(10):
            make_jobs(make_queue(), 2, **of(Report.objects.create(title="x")))
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(LIST)
        counts.append(len(queries))
        assert len([q for q in queries if "FROM tenantqueue_job" in q["sql"]]) == 1

    assert counts[0] == counts[1]


@pytest.mark.parametrize("site", ["office", "bare"])
def test_nothing_of_jobs_is_shown_to_those_who_may_not_view_them(
    client: Client, admin_client: Client, report: Report, site: str
) -> None:
    """In "office" the user lacks the permission; "bare" has no admin of jobs to say who may."""
    job = make_job(**of(report, task="secret.name"))
    if site == "office":
        user = User.objects.create_user("clerk", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename="change_report"))
        client.force_login(user)
    else:
        client = admin_client

    for address in (change_page(report, site), f"/{site}/testapp/report/"):
        response = client.get(address)
        assert response.status_code == 200
        assert "secret" not in response.content.decode()
        assert f"#{job.pk}" not in text_of(response)
        assert "last job" not in text_of(response).lower()


def test_jobs_are_shown_to_those_who_may_only_look(client: Client, report: Report) -> None:
    job = make_job(**of(report))
    user = User.objects.create_user("auditor", is_staff=True)
    codenames = ["view_report", "view_job"]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)

    assert f"#{job.pk}" in text_of(client.get(change_page(report)))


def test_hostile_names_are_escaped(admin_client: Client, report: Report) -> None:
    make_job(**of(report, task="<script>alert(1)</script>"))

    for address in (change_page(report), LIST):
        assert "<script>alert" not in admin_client.get(address).content.decode()
