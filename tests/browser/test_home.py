"""The operators' first page in a real browser: it follows what happens, and keeps edits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from django_tenantqueue.models import Job, TenantQueue
from tests.factories import make_job, make_jobs, make_queue

pytestmark = pytest.mark.django_db(transaction=True)
HOME = "/admin/tenantqueue/"
OpenPage = Callable[..., Page]


def test_page_follows_the_jobs_without_a_reload(open_page: OpenPage) -> None:
    queue = make_queue("acme", "reports")
    make_job(queue)
    page = open_page(HOME)
    row = page.locator("#tq-home tbody tr").first
    expect(row).to_contain_text("acme / reports")
    page.evaluate("window.marked = true")

    make_jobs(queue, 4)

    expect(row.locator("td").nth(3)).to_have_text("5")
    assert page.evaluate("window.marked") is True
    Job.objects.all().delete()
    expect(page.locator("#tq-home")).to_contain_text("No queue has ready or running jobs.")


def test_age_is_right_at_once_after_each_refresh(open_page: OpenPage) -> None:
    queue = make_queue("acme", "reports")
    make_job(queue)
    page = open_page(HOME)
    expect(page.locator(".tq-age")).to_contain_text("Updated")
    page.evaluate(
        "window.told = new Set(); new MutationObserver(() => window.told.add("
        "document.querySelector('.tq-age').textContent.split(' ')[0]))"
        ".observe(document.body, {childList: true, subtree: true, characterData: true})"
    )

    make_jobs(queue, 4)

    expect(page.locator("#tq-home tbody tr").first.locator("td").nth(3)).to_have_text("5")
    assert page.evaluate("[...window.told]") == ["Updated"]


def test_table_stays_where_it_was_scrolled_to(open_page: OpenPage) -> None:
    queue = make_queue("acme", "reports")
    make_job(queue)
    page = open_page(HOME, viewport={"width": 420, "height": 800})
    page.locator(".tq-scroll").first.evaluate("element => { element.scrollLeft = 150; }")

    make_jobs(queue, 4)

    expect(page.locator("#tq-home tbody tr").first.locator("td").nth(3)).to_have_text("5")
    assert page.locator(".tq-scroll").first.evaluate("element => element.scrollLeft") == 150


def test_edit_in_progress_is_kept_until_it_is_saved(open_page: OpenPage) -> None:
    queue = make_queue("acme", num_slots=3)
    make_job(queue)
    page = open_page(HOME)
    page.fill("#tq-home input[name=num_slots]", "7")
    page.locator("h1").first.click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.wait_for_timeout(4_500)

    assert not asked
    expect(page.locator("#tq-home input[name=num_slots]")).to_have_value("7")
    page.click("#tq-home button")
    expect(page.locator(".messagelist")).to_contain_text("3 → 7")
    assert TenantQueue.objects.get(pk=queue.pk).num_slots == 7


def test_nothing_sticks_out_of_a_narrow_window(open_page: OpenPage) -> None:
    make_job(make_queue("a-tenant-with-a-long-name" * 3, "reports" * 5))
    page = open_page(HOME, viewport={"width": 420, "height": 800})

    assert page.evaluate("document.documentElement.scrollWidth") <= 420
