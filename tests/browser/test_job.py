"""The page of a job in a real browser: it follows the job, and enqueues it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from django_tenantqueue.states import State
from tests.factories import FakeWorker, make_job, make_queue
from tests.sample_tasks import signs_in

pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]

TRACE = """Traceback (most recent call last):
  File "/srv/site-packages/django_tenantqueue/execution/run.py", line 209, in call
    value = call.func(*call.args, **call.kwargs)
  File "/srv/shop/tasks.py", line 7, in send
    raise ValueError("no")
ValueError: no
"""


def page_of(job: Job) -> str:
    return f"/admin/tenantqueue/job/{job.pk}/change/"


def update(job: Job, **columns: Any) -> None:
    Job.objects.filter(pk=job.pk).update(**columns)


@pytest.fixture
def worker(transactional_db: None) -> Any:
    worker = FakeWorker()
    yield worker
    worker.close()


def test_page_follows_a_job_to_its_end_without_a_reload(
    open_page: OpenPage, worker: FakeWorker
) -> None:
    job = make_job(make_queue("acme"), args={"args": ["the argument"]})
    page = open_page(page_of(job))
    expect(page.locator("h1 .tq-state")).to_have_text("ready")
    expect(page.locator("#id_priority")).to_be_visible()
    page.evaluate("window.marked = true")

    claimed = worker.claim_some()
    update(job, state=State.RUNNING, started_at=timezone.now(), progress_done=3, progress_total=9)

    expect(page.locator("h1 .tq-state")).to_have_text("running")
    expect(page.locator("#tq-progress + .tq-body")).to_contain_text("3 of 9")
    expect(page.locator(".tq-events")).to_contain_text("started, attempt 1 of 5")
    expect(page.locator("#id_priority")).to_have_count(0)
    expect(page.locator("button[name=_cancel]")).to_have_text("Ask to stop")
    error = {"attempt": 1, "class": "ValueError", "message": "it failed", "traceback": TRACE}
    update(job, errors=[error])
    expect(page.locator(".tq-failure")).to_contain_text("it failed")

    worker.finish(claimed)

    expect(page.locator("h1 .tq-state")).to_have_text("success")
    expect(page.locator("#tq-result + .tq-body")).to_contain_text("The task returned nothing.")
    expect(page.locator("button[name=_cancel]")).to_have_count(0)
    assert page.evaluate("window.marked") is True
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(4_500)
    assert not asked, "a job that has ended is not asked for"


def test_page_of_a_job_whose_time_has_no_seconds_is_refreshed(open_page: OpenPage) -> None:
    page = open_page(page_of(job := make_job(make_queue("acme"))))
    update(job, run_at=timezone.now().replace(second=0, microsecond=0))
    page.reload()

    update(job, priority=17)

    expect(page.locator("#id_priority")).to_have_value("17")


def test_focus_scroll_position_and_new_values_are_kept_apart(open_page: OpenPage) -> None:
    error = {"attempt": 1, "class": "ValueError", "message": "no", "traceback": "line\n" * 300}
    job = make_job(make_queue("acme"), errors=[error], attempt=1)
    page = open_page(page_of(job))
    page.locator(".tq-trace").evaluate("element => { element.scrollTop = 500; }")
    page.focus("button[name=_cancel]")

    update(job, priority=17, progress_message="on its way")

    expect(page.locator("#id_priority")).to_have_value("17")
    expect(page.locator("button[name=_cancel]")).to_be_focused()
    assert page.locator(".tq-trace").evaluate("element => element.scrollTop") == 500


def test_refresh_waits_while_a_field_is_edited(open_page: OpenPage) -> None:
    job = make_job(make_queue("acme"))
    page = open_page(page_of(job))
    page.fill("#id_priority", "120")
    page.locator("h1").first.click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.wait_for_timeout(4_500)

    assert not asked
    expect(page.locator("#id_priority")).to_have_value("120")
    page.click("button[name=_tune]")
    expect(page.locator(".messagelist")).to_contain_text("240 → 120")


def test_refresh_stops_while_the_page_is_hidden(open_page: OpenPage) -> None:
    job = make_job(make_queue("acme"))
    page = open_page(page_of(job))
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.wait_for_timeout(500)  # a request that is under way
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.wait_for_timeout(4_500)

    assert not asked
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    update(job, priority=17)
    expect(page.locator("#tq-facts + dl")).to_contain_text("17")


def test_page_without_javascript_is_refreshed_by_its_link(open_page: OpenPage) -> None:
    job = make_job(make_queue("acme"))
    expect(open_page(page_of(job)).get_by_role("link", name="Refresh")).to_be_hidden()
    page = open_page(page_of(job), java_script_enabled=False)
    update(job, priority=17)

    page.get_by_role("link", name="Refresh").click()

    expect(page.locator("#tq-facts + dl")).to_contain_text("17")


def test_what_is_opened_stays_open(open_page: OpenPage) -> None:
    error = {"attempt": 1, "class": "ValueError", "message": "first", "traceback": TRACE}
    job = make_job(make_queue("acme"), errors=[error], attempt=1)
    page = open_page(page_of(job))
    expect(page.locator(".tq-failure pre").last).to_contain_text("/srv/shop/tasks.py")
    expect(page.locator(".tq-frames pre")).to_be_hidden()
    page.click(".tq-frames summary")
    expect(page.locator(".tq-frames pre")).to_contain_text("execution/run.py")

    update(job, errors=[error, {**error, "attempt": 2, "message": "second"}])

    expect(page.locator(".tq-failure").first).to_contain_text("second")
    expect(page.locator(".tq-failure").nth(1).locator(".tq-frames pre")).to_be_visible()
    expect(page.locator(".tq-failure").first.locator(".tq-frames pre")).to_be_hidden()


def test_arguments_are_edited_and_the_job_is_enqueued_again(open_page: OpenPage) -> None:
    old = signs_in.using(tenant="acme").delay("ada", "hunter2", remember=True)
    control.cancel([old.pk])
    page = open_page(page_of(old))
    expect(page.locator("#tq-arguments + dl")).to_contain_text("••••••")
    page.click("text=Enqueue again…")
    assert json.loads(page.input_value("#id_args")) == ["ada", "••••••"]
    page.fill("#id_args", '["bob", "••••••"')
    page.click("input[type=submit].default")
    expect(page.locator(".errorlist")).to_contain_text("This is not JSON")

    page.fill("#id_args", '["bob", "••••••"]')
    page.click("input[type=submit].default")

    new = Job.objects.get(pk__gt=old.pk)
    expect(page.locator(".messagelist")).to_contain_text(f"Enqueued as job #{new.pk}")
    expect(page).to_have_url(f"{page.url.partition('/admin/')[0]}{page_of(new)}")
    assert new.args["args"] == ["bob", "hunter2"]
    page.click(f".tq-events a >> text=#{old.pk}")
    expect(page.locator(".tq-events")).to_contain_text("enqueued again by admin-0 (admin) as")


def test_nothing_sticks_out_of_a_narrow_window(open_page: OpenPage) -> None:
    long = "a-long-name" * 20
    error = {"attempt": 1, "class": long, "message": long, "traceback": TRACE.replace("no", long)}
    job = make_job(
        make_queue("acme"), task=long, args={"args": [long], "kwargs": {long: long}}, errors=[error]
    )
    for path in (page_of(job), page_of(signs_in.delay("ada", "x")).replace("change", "again")):
        page = open_page(path, viewport={"width": 420, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 420
