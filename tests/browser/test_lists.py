"""The lists of the admin in a real browser: they follow what happens, and keep edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.operations.actor import acting_as
from django_tenantqueue.states import State
from tests.factories import FakeWorker, make_job, make_jobs, make_queue, make_worker, pause_task
from tests.operations.monitors import start
from tests.site import admin_path

pytestmark = pytest.mark.django_db(transaction=True)
QUEUES = "/admin/tenantqueue/tenantqueue/"
JOBS = "/admin/tenantqueue/job/"
WORKERS = "/admin/tenantqueue/worker/"
MONITORS = "/admin/tenantqueue/concurrentjobmonitor/"
REFRESH = "x-tenantqueue-refresh"
OpenPage = Callable[..., Page]


@pytest.fixture
def worker() -> Iterator[FakeWorker]:
    with closing(FakeWorker()) as made:
        yield made


def refreshed(page: Page, times: int = 1) -> None:
    """Wait until the list has read itself again."""
    for _ in range(times):
        with page.expect_request_finished(lambda asked: REFRESH in asked.headers):
            pass


def mark(page: Page) -> None:
    """Mark the document: a reload loses the mark."""
    page.evaluate("window.marked = true")


def is_marked(page: Page) -> bool:
    return page.evaluate("window.marked === true") is True


def test_gauge_and_running_jobs_follow_slots_that_are_saved_while_a_worker_runs(
    open_page: OpenPage, worker: FakeWorker
) -> None:
    queue = make_queue("acme", num_slots=1)
    make_jobs(queue, 5)
    page = open_page(QUEUES)
    running = page.locator("td.field-running")
    worker.claim_some()
    expect(running).to_contain_text("1 / 1")
    expect(running.locator(".tq-gauge-full")).to_be_visible()

    page.fill("#id_form-0-num_slots", "4")
    page.click("input[name=_save]")
    expect(running).to_contain_text("1 / 4")
    mark(page)
    worker.claim_some()

    expect(running).to_contain_text("4 / 4")
    expect(page.locator("td.field-waiting a")).to_have_text("1")
    assert is_marked(page)


def test_an_edit_survives_refreshes_and_is_saved(open_page: OpenPage, worker: FakeWorker) -> None:
    queue = make_queue("acme", num_slots=3)
    make_jobs(queue, 2)
    page = open_page(QUEUES)
    page.fill("#id_form-0-num_slots", "7")
    page.locator("h1").first.click()
    expect(page.locator("#tq-live .tq-mode")).to_contain_text("Paused while you edit")
    make_queue("aaa")  # the row of another queue would come first
    worker.claim_some()

    refreshed(page, 2)

    expect(page.locator("td.field-running")).to_contain_text("2 / 3")
    expect(page.locator("#id_form-0-num_slots")).to_have_value("7")
    page.click("input[name=_save]")
    expect(page.locator(".messagelist")).to_contain_text("1 tenant queue was changed")
    queue.refresh_from_db()
    assert queue.num_slots == 7
    assert TenantQueue.objects.get(tenant="aaa").num_slots == 5


def test_a_conflict_is_refused_after_refreshes(open_page: OpenPage) -> None:
    queue = make_queue("acme", num_slots=3)
    page = open_page(QUEUES)
    page.fill("#id_form-0-num_slots", "5")
    control.tune_queue(queue.pk, num_slots=7)

    refreshed(page, 2)
    page.click("input[name=_save]")

    expect(page.locator(".field-num_slots .errorlist")).to_contain_text("set it to 7")
    refreshed(page)
    expect(page.locator(".field-num_slots .errorlist")).to_contain_text("set it to 7")
    queue.refresh_from_db()
    assert queue.num_slots == 7


def test_an_unedited_list_shows_the_values_of_others_and_saves_over_them(
    open_page: OpenPage,
) -> None:
    queue = make_queue("acme", num_slots=3)
    page = open_page(QUEUES)
    control.tune_queue(queue.pk, num_slots=7)
    expect(page.locator("#id_form-0-num_slots")).to_have_value("7")

    page.fill("#id_form-0-num_slots", "8")
    page.click("input[name=_save]")

    expect(page.locator(".messagelist")).to_contain_text("1 tenant queue was changed")
    queue.refresh_from_db()
    assert queue.num_slots == 8


def test_rows_that_came_with_a_refresh_are_saved_and_chosen(open_page: OpenPage) -> None:
    make_queue("zeta")
    page = open_page(QUEUES)
    made = make_queue("acme", num_slots=3)
    expect(page.locator("#result_list tbody tr")).to_have_count(2)

    page.fill("#id_form-0-num_slots", "9")
    page.click("input[name=_save]")
    expect(page.locator(".messagelist")).to_contain_text("1 tenant queue was changed")
    made.refresh_from_db()
    assert made.num_slots == 9

    make_queue("bolt")
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    page.check("#action-toggle")
    expect(page.locator(".action-counter")).to_contain_text("3 of 3")
    expect(page.locator("#result_list tbody input.action-select:checked")).to_have_count(3)


def test_ticked_rows_stay_while_others_come(open_page: OpenPage) -> None:
    queue = make_queue("acme")
    first = make_job(queue, state=State.ERROR)
    page = open_page(JOBS)
    box = page.locator(f"input[name=_selected_action][value='{first.pk}']")
    box.check()
    make_jobs(queue, 2)

    refreshed(page, 2)

    expect(box).to_be_checked()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    box.uncheck()
    page.locator("h1").first.click()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)


def test_jobs_come_and_change_with_filters_kept(open_page: OpenPage) -> None:
    queue = make_queue("acme")
    page = open_page(f"{JOBS}?tenant=acme&state=ready")
    expect(page.locator(".tq-empty")).to_be_visible()

    make_jobs(queue, 2)
    make_jobs(make_queue("other"), 1)

    expect(page.locator("#result_list tbody tr")).to_have_count(2)
    mark(page)
    Job.objects.filter(queue=queue).update(priority=7)
    expect(page.locator("td.field-priority").first).to_have_text("7")
    assert is_marked(page)
    Job.objects.all().delete()
    expect(page.locator(".tq-empty")).to_be_visible()


def test_workers_and_monitors_follow(open_page: OpenPage) -> None:
    made = make_worker()
    workers, monitors = open_page(WORKERS), open_page(MONITORS)
    start()
    expect(monitors.locator("#result_list tbody tr")).to_have_count(1)

    make_job(state=State.RUNNING, worker_id=made.pk)

    expect(workers.locator("td.field-running .tq-number")).to_have_text("1")


def test_refresh_is_turned_off_for_the_next_page_too(open_page: OpenPage) -> None:
    make_queue("acme")
    page = open_page(QUEUES)
    expect(page.locator("#tq-live .tq-mode")).to_have_text("Live")
    page.uncheck("#tq-live input")
    expect(page.locator("#tq-live .tq-mode")).to_have_text("Off")
    page.goto(JOBS)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.wait_for_timeout(5_500)

    assert not asked
    expect(page.locator("#tq-live input")).not_to_be_checked()
    expect(page.locator("#tq-live .tq-mode")).to_have_text("Off")


def test_nothing_is_read_while_text_is_selected_or_the_tab_is_hidden(open_page: OpenPage) -> None:
    make_queue("acme")
    page = open_page(QUEUES)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("getSelection().selectAllChildren(document.querySelector('th.field-title'))")
    page.wait_for_timeout(5_500)
    assert not asked

    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate("getSelection().removeAllRanges()")
    page.wait_for_timeout(5_500)
    assert not asked

    page.evaluate("delete document.hidden")
    refreshed(page)


def test_list_says_that_it_is_old_when_the_server_does_not_answer(open_page: OpenPage) -> None:
    make_queue("acme")
    page = open_page(f"{QUEUES}?_popup=1")
    expect(page.locator("#tq-live .tq-age")).to_contain_text("Updated")

    page.route("**/tenantqueue/tenantqueue/**", lambda route: route.abort())

    expect(page.locator("#tq-live .tq-age")).to_contain_text("Not updated for")


def test_list_without_javascript_has_no_switch(open_page: OpenPage) -> None:
    make_queue("acme")
    page = open_page(QUEUES, java_script_enabled=False)

    expect(page.locator("#tq-live label")).to_be_hidden()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)


def test_all_columns_of_the_queues_fit_a_usual_window(open_page: OpenPage) -> None:
    queue = make_queue("a-tenant-with-a-long-name", "reports", num_slots=1)
    make_jobs(queue, 1, state=State.RUNNING)
    make_jobs(queue, 1100)

    page = open_page(QUEUES, viewport={"width": 1400, "height": 800})

    hidden = page.locator("#changelist .results").evaluate("e => e.scrollWidth - e.clientWidth")
    assert hidden == 0


@pytest.mark.parametrize("model", ["change", "job"])
def test_all_columns_fit_a_usual_window(open_page: OpenPage, model: str) -> None:
    now, tenant = timezone.now(), "a-tenant-with-a-long-name"
    task = "shop.reporting.tasks.build_the_monthly_report_of_all_customers"
    make_jobs(make_queue(tenant, "reports_of_the_month"), 1, task=task, started_at=now)
    with acting_as("operations.of.all.regions@example-company.com", "command"):
        pause_task(task, allow_unknown=True)

    page = open_page(admin_path(model), viewport={"width": 1400, "height": 800})

    results = page.locator("#changelist .results")
    assert results.evaluate("e => e.scrollWidth - e.clientWidth") == 0


def test_rows_of_a_viewer_follow_while_a_link_has_the_focus(open_page: OpenPage) -> None:
    queue = make_queue("acme")
    page = open_page(QUEUES)
    page.evaluate("document.querySelectorAll('.action-select').forEach(box => box.remove())")
    page.focus("th.field-title a")

    make_jobs(queue, 3)

    expect(page.locator("td.field-waiting a")).to_have_text("3")
    expect(page.locator("th.field-title a")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_name_of_a_row_stays_in_a_narrow_window(open_page: OpenPage, scheme: str) -> None:
    make_queue("acme", "reports")
    page = open_page(QUEUES, viewport={"width": 420, "height": 800}, color_scheme=scheme)
    name, results = page.locator("th.field-title"), page.locator("#changelist .results")
    results.evaluate("element => { element.scrollLeft = 10_000; }")

    box, around = name.bounding_box(), results.bounding_box()

    assert box
    assert around
    assert results.evaluate("element => element.scrollLeft") > 0
    assert abs(box["x"] - around["x"]) < 2
