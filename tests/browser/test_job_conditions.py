"""Jobs are found by time, label and more in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from django_tenantqueue.states import State
from tests.factories import make_job, make_queue
from tests.sample_tasks import bills

from .fitting import pages_that_fit

pytestmark = pytest.mark.django_db(transaction=True)
JOBS = "/admin/tenantqueue/job/"
TUESDAY = datetime(2026, 11, 24, 9, tzinfo=UTC)
OpenPage = Callable[..., Page]


def test_invoice_of_last_tuesday_is_found_with_one_form(open_page: OpenPage) -> None:
    queue = make_queue("acme")
    for day in range(-1, 2):
        make_job(
            queue,
            task=bills.name,
            state=State.SUCCESS,
            created_at=TUESDAY + timedelta(days=day),
            args={"args": [4711], "search": ["invoice=4711"]},
        )
    page = open_page(f"{JOBS}?state=finished")

    page.click("summary:has-text('time, label and more')")
    page.fill("#tq-created_from", "2026-11-24T00:00")
    page.fill("#tq-created_to", "2026-11-25T00:00")
    page.fill("#tq-argument", "invoice=4711")
    page.press("#tq-argument", "Enter")

    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    assert parse_qs(urlsplit(page.url).query, keep_blank_values=True) == {
        "state": ["finished"],
        "created_from": ["2026-11-24T00:00"],
        "created_to": ["2026-11-25T00:00"],
        "argument": ["invoice=4711"],
    }
    expect(page.locator("#tq-argument")).to_be_visible()
    page.click(".tq-conditions >> text=Clear")
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    assert parse_qs(urlsplit(page.url).query) == {"state": ["finished"]}


def test_form_fits_on_a_phone(open_page: OpenPage) -> None:
    make_job(make_queue("acme"), labels=["nightly"])
    page = open_page(JOBS, viewport={"width": 400, "height": 800})

    assert list(pages_that_fit(page, {"open": f"{JOBS}?label=nightly", "shut": JOBS}))
