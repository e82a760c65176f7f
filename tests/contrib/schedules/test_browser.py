"""Schedules are added with a preview of their runs, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from django_tenantqueue.contrib.schedules.control import make_schedule
from django_tenantqueue.contrib.schedules.firing import fire_schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.schedules.services import run_schedules
from django_tenantqueue.models import Job
from tests.browser.fitting import pages_that_fit
from tests.testapp.tasks import echo, noop

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/tenantqueue_schedules/schedule/"
OpenPage = Callable[..., Page]


def test_schedule_is_added_with_a_preview_and_run_now(open_page: OpenPage) -> None:
    page = open_page(f"{LIST}add/")
    runs = page.locator("#tq-runs")
    page.get_by_label("Name:").fill("nightly")
    page.get_by_label("Task:").fill(noop.name)
    page.get_by_label("which tenants").select_option("none")
    page.get_by_label("When:").fill("30 2 * *")
    expect(runs).to_contain_text("is not a cron expression")
    page.get_by_label("When:").fill("30 2 * * *")
    page.get_by_label("Time zone:").fill("Europe/Berlin")
    expect(runs.locator("li")).to_have_count(5)
    expect(runs).to_contain_text("02:30:00 CE")

    page.get_by_role("button", name="Save and continue editing").click()
    page.get_by_role("button", name="Run now").click()

    expect(page.locator(".messagelist")).to_contain_text("1 job was enqueued")
    assert Schedule.objects.get().last_job_id == Job.objects.get().pk


def make_some() -> Schedule:
    make_schedule("invoices" * 10, "a_package.tasks." + "n" * 90, "0 6 1 * *", tenant="acme" * 20)
    failing = make_schedule("failing", "nowhere.task", "*/5 * * * *", tenant="zebra")
    due = timezone.now() - timedelta(minutes=2)
    Schedule.objects.filter(pk=failing.pk).update(tick_at=due, next_at=due)
    fire_schedules("default")
    row = make_schedule("report", echo, "0 3 * * mon-fri", args=[1], time_zone="Europe/Berlin")
    run_schedules([row.pk])
    Schedule.objects.filter(pk=row.pk).update(lateness_seconds=0.31)
    return row


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1400])
def test_nothing_sticks_out_of_the_window(open_page: OpenPage, width: int, scheme: str) -> None:
    row = make_some()
    page = open_page(LIST, viewport={"width": width, "height": 900}, color_scheme=scheme)

    pages = {"list": LIST, "page": f"{LIST}{row.pk}/change/", "add": f"{LIST}add/"}
    assert list(pages_that_fit(page, pages)) == list(pages)
