"""What the users of a product see of their jobs, in a real browser and without a login."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from playwright.sync_api import Browser, Page, Request, expect

from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.states import State
from tests.factories import make_job, make_jobs, make_queue
from tests.testapp.tasks import noop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.web.urls")]
Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, live_server: Any) -> Iterator[Visit]:
    """Return a function that opens a page with jobs; its clock goes on only when it is told to.

    `page.asked` lists the requests for statuses.
    """
    contexts = []

    def visit(path: str, *, frozen: bool = False, **options: Any) -> Page:
        context = browser.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        page = context.new_page()
        if frozen:
            page.clock.install()
        page.asked = []

        def note(request: Request) -> None:
            if request.url.endswith("/jobs/status/"):
                page.asked.append(request)

        page.on("request", note)
        page.goto(path)
        return page

    yield visit
    for context in contexts:
        context.close()


def change(job_id: int, **columns: Any) -> None:
    """Write columns of a job, as a worker does."""
    marks = ", ".join(f"{name} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE tenantqueue_job SET {marks} WHERE id = %s", [*columns.values(), job_id]
        )


def end(job_id: int, state: State = State.SUCCESS, **columns: Any) -> None:
    finished_at = Job.objects.get(pk=job_id).created_at
    change(job_id, state=state.value, final=True, finished_at=finished_at, **columns)


def look(page: Page) -> None:
    with page.expect_response("**/jobs/status/"):
        page.clock.run_for(60_000)


def test_bar_follows_a_running_job_to_its_end_without_a_reload(visit: Visit) -> None:
    job = make_job(state=State.RUNNING, progress_done=1, progress_total=10)
    page = visit(f"/each/?id={job.pk}")
    page.evaluate(
        "window.ends = []; document.addEventListener('tenantqueue:status', "
        "event => event.detail.final && window.ends.push(event.detail.id))"
    )
    bar = page.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-valuenow", "10")

    change(job.pk, progress_done=5, progress_message="<b>row 5</b>")
    expect(bar).to_have_attribute("aria-valuenow", "50")
    expect(bar).to_have_js_property("value", 50)
    expect(page.locator(".tenantqueue-message")).to_have_text("<b>row 5</b>")
    expect(page.locator(".tenantqueue-percent")).to_have_text("50 %")

    end(job.pk)
    expect(page.get_by_role("status")).to_have_text("done")
    expect(bar).to_have_attribute("aria-valuenow", "100")
    assert page.evaluate("window.ends") == [job.pk]


def test_policy_without_inline_code_is_kept(visit: Visit) -> None:
    job = make_job(state=State.RUNNING)
    page = visit(f"/each/?id={job.pk}", frozen=True)
    said = []
    page.on("console", lambda message: said.append(message.text))

    page.reload()
    look(page)

    assert said == []


def test_element_that_is_inserted_later_is_followed(visit: Visit) -> None:
    job, later = make_job(state=State.SUCCESS), make_job()
    page = visit(f"/each/?id={job.pk}", frozen=True)
    page.evaluate(
        "address => fetch(address).then(answer => answer.text())"
        ".then(text => document.body.insertAdjacentHTML('beforeend', text))",
        f"/each/?id={later.pk}",
    )
    end(later.pk)

    look(page)

    expect(page.get_by_role("status")).to_have_text(["done", "done"])


def test_one_request_asks_for_all_jobs_of_a_page_that_have_not_ended(visit: Visit) -> None:
    queue = make_queue()
    ids = [*make_jobs(queue, 5), *make_jobs(queue, 2, state=State.SUCCESS)]
    page = visit("/each/?" + "&".join(f"id={i}" for i in ids), frozen=True)

    look(page)

    assert len(page.asked) == 1
    assert page.asked[0].post_data.count("token=") == 5


def test_nothing_is_asked_for_after_the_last_job_has_ended(visit: Visit) -> None:
    job = make_job()
    page = visit(f"/each/?id={job.pk}", frozen=True)
    end(job.pk, State.ERROR, errors='[{"message": "disk full"}]')
    look(page)
    expect(page.get_by_role("status")).to_have_text("failed")
    expect(page.locator(".tenantqueue-message")).to_have_text("Something went wrong.")

    page.clock.run_for(600_000)

    assert len(page.asked) == 1


def test_nothing_is_asked_for_while_the_tab_is_hidden(visit: Visit) -> None:
    job = make_job()
    page = visit(f"/each/?id={job.pk}", frozen=True)
    show = (
        "value => { Object.defineProperty(document, 'hidden', {value, configurable: true}); "
        "document.dispatchEvent(new Event('visibilitychange')); }"
    )
    page.evaluate(show, True)
    page.clock.run_for(600_000)
    assert page.asked == []

    with page.expect_response("**/jobs/status/"):
        page.evaluate(show, False)
        page.clock.run_for(100)


def test_requests_become_rarer_while_nothing_changes(visit: Visit) -> None:
    page = visit(f"/each/?id={make_job().pk}", frozen=True)

    for _ in range(12):
        look_at = len(page.asked)
        with page.expect_response("**/jobs/status/"):
            while len(page.asked) == look_at:
                page.clock.run_for(500)
    page.clock.run_for(9_000)

    assert len(page.asked) == 12


def test_site_that_does_not_answer_is_asked_again(visit: Visit) -> None:
    job = make_job()
    page = visit(f"/each/?id={job.pk}", frozen=True)
    page.route("**/jobs/status/", lambda route: route.fulfill(status=503))
    look(page)
    page.unroute("**/jobs/status/")
    end(job.pk)

    look(page)

    expect(page.get_by_role("status")).to_have_text("done")


def test_job_that_cannot_be_read_now_keeps_its_status_and_is_asked_for_again(visit: Visit) -> None:
    job = make_job()
    page = visit(f"/each/?id={job.pk}", frozen=True)
    before = page.get_by_role("status").text_content()
    token = page.locator("tenantqueue-progress").get_attribute("data-token")
    entry = {"token": token, "job": None, "error": "down", "retry": True}
    page.route("**/jobs/status/", lambda route: route.fulfill(json={"jobs": [entry]}))
    look(page)
    expect(page.get_by_role("status")).to_have_text(before or "")
    page.unroute("**/jobs/status/")
    end(job.pk)

    look(page)

    expect(page.get_by_role("status")).to_have_text("done")


def test_job_that_is_gone_is_no_longer_asked_for(visit: Visit) -> None:
    job = make_job()
    page = visit(f"/each/?id={job.pk}", frozen=True)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM tenantqueue_job WHERE id = %s", [job.pk])
    look(page)

    expect(page.get_by_role("status")).to_have_text("no longer known")
    page.clock.run_for(600_000)
    assert len(page.asked) == 1


def test_page_is_loaded_again_when_it_asked_for_that(visit: Visit) -> None:
    job = make_job()
    page = visit(f"/each/?reload=1&id={job.pk}", frozen=True)
    end(job.pk)

    with page.expect_navigation():
        page.clock.run_for(2_000)

    expect(page.get_by_role("status")).to_have_text("done")
    expect(page.locator("[data-token]")).to_have_count(0)


def test_page_without_scripts_offers_to_reload(visit: Visit) -> None:
    job = make_job(state=State.RUNNING, progress_done=1, progress_total=4)
    page = visit(f"/each/?id={job.pk}", java_script_enabled=False)
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "25")
    change(job.pk, progress_done=2)

    page.get_by_role("link", name="Reload the page").click()

    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "50")


@pytest.mark.parametrize("path", ["each", "list"])
def test_nothing_sticks_out_of_a_narrow_page(visit: Visit, path: str) -> None:
    job = make_job(
        state=State.RUNNING,
        task=f"app.{'a' * 90}",
        created_by="ada",
        progress_done=1,
        progress_total=2,
        progress_message="x" * 200,
        stats={"y" * 90: "z" * 90},
    )

    page = visit(f"/{path}/?id={job.pk}&user=ada", viewport={"width": 320, "height": 600})

    expect(page.get_by_role("progressbar")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_monitor_follows_its_details(visit: Visit) -> None:
    details = [noop.call() for _ in range(4)]
    monitor = ConcurrentJobMonitor.objects.start("installs", details, parallel=2)
    page = visit(f"/each/?id={monitor.anchor_id}", frozen=True)
    expect(page.locator(".tenantqueue-state")).to_have_text("waiting")

    first = monitor.details().earliest("pk")
    end(first.pk, held_by=None)
    look(page)

    expect(page.locator(".tenantqueue-state")).to_have_text("running")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "25")
    expect(page.locator(".tenantqueue-message")).to_have_text("1 / 4")
