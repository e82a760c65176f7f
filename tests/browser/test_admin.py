"""What an operator does in the admin, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from django_tenantqueue.models import Job, Worker
from django_tenantqueue.operations import control
from django_tenantqueue.states import State
from tests.factories import (
    make_duty,
    make_job,
    make_jobs,
    make_queue,
    make_worker,
    state_of,
    states_of,
)

pytestmark = pytest.mark.django_db(transaction=True)
QUEUES = "/admin/tenantqueue/tenantqueue/"
JOBS = "/admin/tenantqueue/job/"
WORKERS = "/admin/tenantqueue/worker/"
DUTIES = "/admin/tenantqueue/duty/"
OpenPage = Callable[..., Page]


def test_jobs_are_moved_to_another_queue_from_the_list(open_page: OpenPage) -> None:
    mail = make_queue("acme", "mail")
    ids = make_jobs(make_queue("acme"), 2)
    page = open_page(JOBS)
    page.check("#action-toggle")
    page.select_option("select[name=action]", "move_selected")
    page.click("button[name=index]")
    page.fill("#id_queue", "mial")
    page.click("input[type=submit].default")
    expect(page.locator(".errorlist")).to_contain_text("has no queue “mial”")

    page.fill("#id_queue", "mail")
    page.click("input[type=submit].default")

    expect(page.locator(".messagelist")).to_contain_text("2 jobs: moved.")
    assert Job.objects.filter(pk__in=ids, queue=mail).count() == 2


def test_retry_of_ticked_jobs(open_page: OpenPage) -> None:
    ids = make_jobs(make_queue("acme"), 2, state=State.ERROR)
    page = open_page(f"{JOBS}?state=error")

    page.check("#action-toggle")
    page.select_option("select[name=action]", "retry_selected")
    page.click("button[name=index]")

    expect(page.locator(".messagelist")).to_contain_text("2 jobs: made ready again.")
    assert set(states_of(ids).values()) == {State.READY}


def test_priority_of_ticked_jobs(open_page: OpenPage) -> None:
    ids = make_jobs(make_queue("acme"), 2)
    page = open_page(JOBS)

    page.check("#action-toggle")
    page.select_option("select[name=action]", "change_priority_selected")
    page.click("button[name=index]")
    page.fill("#id_priority", "120")
    page.click(".submit-row input[type=submit]")

    expect(page.locator(".messagelist")).to_contain_text("2 jobs: priority → 120.")
    expect(page.locator("td.field-priority").first).to_have_text("120")
    assert len(ids) == page.locator("td.field-priority").count()


def test_buttons_and_form_of_a_job(open_page: OpenPage) -> None:
    job = make_job(make_queue("acme"))
    page = open_page(f"{JOBS}{job.pk}/change/")

    page.fill("#id_priority", "140")
    page.fill("#id_run_at", "2100-01-02T03:04:05")
    page.click("button[name=_tune]")
    expect(page.locator(".messagelist")).to_contain_text("Priority 240 → 140")
    expect(page.locator(".tq-head .tq-state")).to_have_text("scheduled")
    expect(page.locator("#id_run_at")).to_have_value("2100-01-02T03:04:05")

    page.click("button[name=_run_now]")
    expect(page.locator(".tq-head .tq-state")).to_have_text("ready")

    control.change_priority([job.pk], 300)
    page.fill("#id_priority", "120")
    page.click("button[name=_tune]")
    expect(page.locator(".errorlist")).to_contain_text("meanwhile it became 300")

    page.click("button[name=_cancel]")
    page.click("input[value='Yes, cancel 1 job']")
    expect(page.locator(".tq-head .tq-state")).to_have_text("cancelled")
    assert state_of(job.pk) == State.CANCELLED


def test_filter_by_tenant_and_page_to_older_jobs(open_page: OpenPage) -> None:
    ids = make_jobs(make_queue("acme"), 150)
    make_jobs(make_queue("zeta"), 10)
    page = open_page(JOBS)

    page.fill("input[name=tenant]", "acme")
    page.press("input[name=tenant]", "Enter")
    expect(page.locator("#result_list tbody tr")).to_have_count(100)
    expect(page.locator("#result_list tbody tr .tq-number").first).to_have_text(f"#{ids[-1]}")

    page.get_by_role("link", name="Older").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(50)

    page.get_by_role("link", name="Newer").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(100)


def test_worker_is_stopped_from_the_list(open_page: OpenPage) -> None:
    worker, other = make_worker(name="web.0"), make_worker(name="web.1")
    page = open_page(WORKERS)

    page.check(f"input[name=_selected_action][value='{worker.pk}']")
    page.select_option("select[name=action]", "stop_selected")
    page.click("button[name=index]")
    page.click("input[value='Yes, stop 1 worker']")

    expect(page.locator(".messagelist")).to_contain_text("1 worker stops: jobs still running")
    expect(page.locator("td.field-state")).to_have_text(["stopping", "working"])
    assert list(Worker.objects.filter(stopping=False)) == [other]


def test_job_is_reached_from_the_worker_that_runs_it(open_page: OpenPage) -> None:
    worker = make_worker()
    job = make_job(state=State.RUNNING, worker_id=worker.pk)
    page = open_page(WORKERS)

    page.get_by_role("link", name=worker.name).click()
    page.locator(".tq-running").get_by_role("link", name=f"#{job.pk}").click()

    expect(page.locator(".tq-head .tq-state")).to_have_text("running")


@pytest.mark.parametrize("width", [1280, 1440])
def test_all_columns_of_the_workers_fit_a_usual_window(open_page: OpenPage, width: int) -> None:
    make_worker(
        name="worker-7d9f8b6c5d-x2x4z-1.12",
        host="worker-7d9f8b6c5d-x2x4z",
        jobs_running=108,
        rss_bytes=10**10,
        claims_per_second=1234,
        jobs_per_second=12345,
        queues=["reports", "imports"],
        last_error="OperationalError: the connection is lost " * 5,
        last_error_at=timezone.now(),
    )

    page = open_page(WORKERS, viewport={"width": width, "height": 800})

    hidden = page.locator("#changelist .results").evaluate("e => e.scrollWidth - e.clientWidth")
    assert hidden == 0


def brightness(page: Page, selector: str, column: str) -> float:
    """Return how bright a colour of an element is: 0 to 255."""
    # in one step: a refresh may replace the element meanwhile
    colour: str = page.evaluate(
        "([selector, column]) => getComputedStyle(document.querySelector(selector))[column]",
        [selector, column],
    )
    red, green, blue = (float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_states_and_code_can_be_read_in_both_colour_schemes(
    open_page: OpenPage, scheme: str
) -> None:
    queue = make_queue("acme")
    jobs = [make_job(queue, state=state, args={"args": [1]}) for state in State]

    page = open_page(JOBS, color_scheme=scheme)
    body = brightness(page, "body", "backgroundColor")
    assert (body < 60) == (scheme == "dark")
    for state in State:
        badge = f".tq-state-{state.value}"
        text, ground = (brightness(page, badge, c) for c in ("color", "backgroundColor"))
        assert abs(text - ground) > 90, state
        assert (ground < 128) == (scheme == "dark"), state

    page.goto(f"{JOBS}{jobs[0].pk}/change/")
    text, ground = (brightness(page, ".tq-pairs pre", c) for c in ("color", "backgroundColor"))
    assert abs(text - ground) > 120


@pytest.mark.parametrize("path", ["queues", "jobs", "job", "workers", "worker", "duties", "duty"])
def test_nothing_sticks_out_of_a_narrow_window(open_page: OpenPage, path: str) -> None:
    job = make_job(
        make_queue("a-tenant-with-a-rather-long-name"),
        state=State.ERROR,
        task="reports.tasks.a_task_with_a_very_long_name_that_must_be_broken_somewhere",
        errors=[{"class": "E", "message": "x" * 300, "traceback": "y" * 300, "attempt": 1}],
    )
    worker = make_worker(
        name="a" * 60, host="b" * 60, last_error="x" * 300, last_error_at=job.run_at
    )
    make_job(job.queue, state=State.RUNNING, task=job.task, worker_id=worker.pk)
    make_duty(worker="c" * 60, outcome="d" * 60, acted_at=job.run_at, error="e" * 300)
    address = {
        "queues": QUEUES,
        "jobs": JOBS,
        "job": f"{JOBS}{job.pk}/change/",
        "workers": WORKERS,
        "worker": f"{WORKERS}{worker.pk}/change/",
        "duties": DUTIES,
        "duty": f"{DUTIES}promote/change/",
    }[path]

    page = open_page(address, viewport={"width": 400, "height": 800})

    assert page.evaluate("document.documentElement.scrollWidth") <= 400
