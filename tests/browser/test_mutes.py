"""A problem is muted, folded and unmuted in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from django_tenantqueue.models import Mute
from tests.factories import make_job, make_jobs, make_queue, make_worker

pytestmark = pytest.mark.django_db(transaction=True)
HOME = "/admin/tenantqueue/"
OpenPage = Callable[..., Page]


def test_problem_is_muted_and_stays_unfolded_while_the_page_is_refreshed(
    open_page: OpenPage,
) -> None:
    make_worker()
    for tenant in ("acme", "zebra"):
        make_job(make_queue(tenant, "mail", paused=True))
    page = open_page(HOME)

    page.get_by_role("link", name="Mute…").click()
    page.get_by_label("zebra/mail").uncheck()
    page.get_by_label("Reason").fill("the import is repaired")
    page.get_by_role("button", name="Mute").click()

    problems = page.locator(".tq-problems > ul")
    expect(problems).to_contain_text("queues without slots: zebra/mail")
    expect(problems).not_to_contain_text("acme/mail")
    muted = page.locator(".tq-muted li")
    expect(muted).to_be_hidden()
    page.get_by_text("1 muted problem").click()
    expect(muted).to_contain_text("by admin-0: the import is repaired")
    make_jobs(make_queue("acme", "other"), 4)
    expect(page.locator("#tq-home tbody")).to_contain_text("acme / other")
    expect(muted).to_be_visible()

    page.get_by_role("button", name="Unmute").click()

    expect(problems).to_contain_text("queues without slots: acme/mail, zebra/mail")
    assert not Mute.objects.exists()
