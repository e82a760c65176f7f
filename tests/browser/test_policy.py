"""The admin works under a Content-Security-Policy that allows what the site itself serves, only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from django_tenantqueue.states import State
from tests.factories import make_job, make_jobs, make_queue

from .test_accessibility import ADMIN, fill

NEEDS = "alerts api routing"
pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]
POLICY = "default-src 'self'"


def with_policy(route: Route) -> None:
    """Serve a page with the policy, which is for what the page loads."""
    if route.request.resource_type != "document":
        route.continue_()
        return
    answer = route.fetch(max_redirects=0)
    route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": POLICY})


def test_no_page_breaks_the_policy(open_page: OpenPage) -> None:
    addresses = fill()
    paused = make_job(make_queue("hooli", num_slots=1), started_at=timezone.now())
    make_jobs(paused.queue, 1, state=State.RUNNING)
    page = open_page("about:blank")
    found: list[tuple[str, str]] = []
    page.on("console", lambda said: found.append((page.url, said.text)))
    page.on("pageerror", lambda error: found.append((page.url, str(error))))
    page.route("**/*", with_policy)
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))

    for address in (*addresses, f"{ADMIN}job/failures/"):
        answer = page.goto(address)
        assert answer is not None
        assert answer.headers["content-security-policy"] == POLICY
    assert found == []


def test_charts_are_drawn_and_refreshed_under_the_policy(open_page: OpenPage) -> None:
    queue = make_queue("acme", num_slots=4)
    make_jobs(queue, 1, state=State.RUNNING)
    page = open_page("about:blank")
    page.route("**/*", with_policy)
    page.goto(ADMIN)
    gauge = page.locator("#tq-home .tq-gauge")

    def share() -> float:
        taken, whole = gauge.locator("svg").bounding_box(), gauge.bounding_box()
        assert taken
        assert whole
        return taken["width"] / whole["width"]

    assert share() == pytest.approx(0.25, abs=0.05)
    make_jobs(queue, 2, state=State.RUNNING)

    expect(page.locator("#tq-home tbody tr td").nth(2)).to_have_text("3")
    assert share() == pytest.approx(0.75, abs=0.05)
