"""A worker that was killed leaves a trace where operators look."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_tenantqueue.models import Change, Job, Worker
from django_tenantqueue.operations.rescue import DeathReport, rescue_worker
from django_tenantqueue.states import State
from django_tenantqueue.status.deaths import death_of
from django_tenantqueue.status.fleet_report import read_report
from tests.admin.conftest import operator, text_of, url_of
from tests.factories import make_job, make_queue, make_worker

__all__ = ["operator"]
pytestmark = pytest.mark.django_db
REASON = "its worker process ended with signal SIGKILL"
CAUSE = "worker process ended with signal SIGKILL"


def make_dead(**death: Any) -> tuple[Worker, Job]:
    """Rescue the job of a worker that has died; return both as they were."""
    worker = make_worker(name="web-1:7", host="host-3")
    job = make_job(make_queue(), state=State.RUNNING, worker_id=worker.pk)
    assert rescue_worker("default", worker.pk, DeathReport(REASON, **death)).complete
    return worker, job


def problems() -> list[str]:
    return [p.text for p in read_report("default", jobs=0).problems if "died" in p.text]


def test_worker_that_died_is_a_problem_for_an_hour() -> None:
    worker, _job = make_dead(crashed=True)

    (problem,) = problems()
    assert problem == (f"workers that died in the last hour: web-1:7 on host-3 (0 s ago: {CAUSE})")
    assert not Worker.objects.filter(pk=worker.pk).exists()
    Change.objects.update(made_at=timezone.now() - timedelta(minutes=61))
    assert problems() == []


def test_worker_that_was_stopped_or_killed_for_one_job_is_no_problem() -> None:
    make_dead(blameless=True, is_recorded=False)
    make_dead(culprit=1, is_recorded=False)

    assert problems() == []
    assert not Change.objects.exists()


def test_first_page_leads_to_the_changes_that_name_dead_workers(admin_client: Client) -> None:
    make_dead(crashed=True)

    page = admin_client.get("/admin/tenantqueue/").content.decode()
    changes = text_of(admin_client.get(url_of("change", "changelist"), {"action__exact": "die"}))

    assert f'href="{url_of("change", "changelist")}?action__exact=die"' in page
    assert "web-1:7" in changes
    assert Change.objects.get().source == Change.Source.WORKER
    assert f"cause {CAUSE}" in changes


def test_page_of_a_dead_worker_has_its_cause_host_and_jobs(admin_client: Client) -> None:
    worker, job = make_dead(crashed=True)

    page = admin_client.get(url_of("worker", "change", worker.pk))

    text = text_of(page)
    assert f"cause of death {CAUSE}" in text
    assert "host host-3" in text
    assert f"version {worker.version}" in text
    assert f"#{job.pk}" in text
    assert url_of("job", "change", job.pk) in page.content.decode()
    link = url_of("worker", "change", worker.pk)
    assert link in admin_client.get(url_of("change", "changelist")).content.decode()
    gone = admin_client.get(url_of("worker", "change", worker.pk + 1))
    assert gone.status_code == 302


def test_page_of_a_dead_worker_shows_jobs_to_those_who_may_see_them(
    operator: Callable[..., Client], settings: Any
) -> None:
    worker, job = make_dead(crashed=True)
    url = url_of("worker", "change", worker.pk)

    page = text_of(operator("view_worker").get(url))

    assert "You are not allowed to view jobs." in page
    assert f"#{job.pk}" not in page
    assert operator("view_job").get(url).status_code == 403
    settings.TENANTQUEUE = {"VISIBLE_TENANTS": "tests.operations.test_deaths.sees_none"}
    limited = operator("view_worker", "view_job").get(url)
    assert limited.status_code in (302, 403)


def sees_none(user: Any) -> list[str]:
    return []


def test_page_of_a_job_names_the_worker_that_died_with_it(admin_client: Client) -> None:
    worker, _job = make_dead(crashed=True)
    lost = make_job(make_queue(), state=State.ERROR, worker_id=worker.pk)
    other = make_job(make_queue(), state=State.ERROR, worker_id=worker.pk + 1)

    page = text_of(admin_client.get(url_of("job", "change", lost.pk)))

    assert f"web-1:7 on host-3, which died: {CAUSE}" in page
    page = text_of(admin_client.get(url_of("job", "change", other.pk)))
    assert f"worker {worker.pk + 1}, which has ended" in page
    assert death_of("default", worker.pk + 1) is None
