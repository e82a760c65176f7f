"""Filter, select all jobs that match, retry, watch the progress: in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from django_tenantqueue.models import Change, Job
from django_tenantqueue.states import State
from tests.factories import make_jobs, make_queue
from tests.process.conftest import workers, zygote  # noqa: F401 - fixtures
from tests.process.test_bulk import LOCK, each_update_of_an_entry, is_waited_for
from tests.process.workers import Workers, wait_for_state, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
JOBS = "/admin/tenantqueue/job/"
OpenPage = Callable[..., Page]


def test_all_failed_jobs_are_retried_and_the_progress_is_seen(
    open_page: OpenPage,
    workers: Workers,  # noqa: F811
) -> None:
    queue = make_queue("acme", paused=True)
    make_jobs(queue, 2500, state=State.ERROR)
    others = make_jobs(make_queue("zeta"), 2, state=State.ERROR)
    workers.start()
    page = open_page(f"{JOBS}?tenant=acme")
    page.locator("#changelist-filter").get_by_role("link", name="error").click()
    page.check("#action-toggle")
    page.click("text=Select all that match")
    expect(page.locator(".actions .all")).to_have_text("All jobs that match are selected")
    page.select_option("select[name=action]", "retry_selected")
    page.click("button[name=index]")
    content = page.locator("#content")
    expect(content).to_contain_text("Jobs that match and can be changed: 2500.")
    expect(content).to_contain_text("tenant: acme")
    expect(content).to_contain_text("state: error")

    with each_update_of_an_entry(f"pg_advisory_xact_lock({LOCK})"), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        page.click("input[type=submit].default")
        expect(page.locator(".messagelist")).to_contain_text("This job performs the action.")
        job = Job.objects.get(queue__name="admin")
        wait_until(lambda: is_waited_for(LOCK) and job.refresh().progress_done == 1000)
        page.reload()
        expect(page.locator("#content")).to_contain_text("1000 of 2500")
        expect(page.locator("#content")).to_contain_text("1000 jobs changed.")
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        wait_for_state(job, State.SUCCESS)

    page.reload()
    expect(page.locator("#content")).to_contain_text("2500 jobs changed.")
    assert Job.objects.filter(queue=queue, state=State.READY).count() == 2500
    assert Job.objects.filter(pk__in=others, state=State.ERROR).count() == 2
    assert Change.objects.get().object_count == 2500
