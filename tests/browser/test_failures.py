"""Failing jobs are found from the operators' first page and retried, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.models import Sum
from playwright.sync_api import Page, expect

from django_tenantqueue.models import Change, Figure
from django_tenantqueue.queries.figures import ALL, Counts, add_figures
from django_tenantqueue.states import State
from tests.factories import make_job, make_queue
from tests.process.conftest import gate as gate
from tests.process.conftest import workers as workers
from tests.process.conftest import zygote as zygote
from tests.process.tasks import look
from tests.process.workers import Gate, Workers, wait_for_end, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
HOME = "/admin/tenantqueue/"
ERROR = "ConnectionRefusedError"
OpenPage = Callable[..., Page]


def counted() -> int:
    rows = Figure.objects.filter(queue_id=ALL, task=look.name, error=ERROR)
    return rows.aggregate(all=Sum("failed"))["all"] or 0


def test_failing_group_is_found_from_the_first_page_and_retried_in_three_clicks(
    open_page: OpenPage, workers: Workers, gate: Gate
) -> None:
    workers.start()
    ids = [look.using(tenant=f"t-{n}", max_attempts=1).delay(str(gate)).pk for n in range(12)]
    assert {job.state for job in wait_for_end(ids)} == {State.ERROR}
    wait_until(lambda: counted() == 12, what="the figures have the failures")
    gate.open()
    page = open_page(HOME)

    page.get_by_role("link", name="failed in the last hour").click()
    page.get_by_role("button", name="Retry all…").click()
    page.get_by_role("button", name="Yes, retry 12 jobs").click()

    expect(page.locator(".messagelist")).to_contain_text("12 jobs: made ready again.")
    assert {job.state for job in wait_for_end(ids)} == {State.SUCCESS}
    assert Change.objects.get().object_count == 12


@pytest.mark.parametrize("width", [420, 1400])
def test_nothing_sticks_out_of_the_window(open_page: OpenPage, width: int) -> None:
    queue = make_queue("a-tenant-with-a-long-name" * 3, "reports" * 5)
    name, error = "a_package.tasks." + "n" * 90, "errors." + "E" * 90
    errors = [{"class": error, "message": "m" * 500}]
    job = make_job(queue, state=State.ERROR, task=name, errors=errors)
    for queue_id in (ALL, queue.pk):
        add_figures("default", {(queue_id, name, error): Counts(failed=12_345, last_job_id=job.pk)})
    page = open_page(f"{HOME}job/failures/", viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    page.get_by_role("link", name="EEE").click()

    expect(page.locator("h1").last).to_contain_text("EEE")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
