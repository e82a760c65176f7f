"""Lists in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from django_tenantqueue.contrib.alerts.control import make_alert_rule
from django_tenantqueue.contrib.alerts.services import tune_alert_rule
from django_tenantqueue.contrib.schedules.control import make_schedule
from tests.testapp.tasks import noop

NEEDS = "schedules"
pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]


def test_audit_trail_fits_a_narrow_window(open_page: OpenPage) -> None:
    rule = make_alert_rule("slow mails", "queue_late", tenant="acme", queue="mails", threshold=120)
    tune_alert_rule(rule.pk, emails="ops@example.com", repeat_minutes=30)
    make_schedule("nightly report", noop, "0 3 * * *", tenant="acme", time_zone="Europe/Berlin")
    page = open_page("/admin/tenantqueue/change/", viewport={"width": 420, "height": 900})
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(3)

    for number in range(3):
        row = rows.nth(number)
        values = row.locator(".field-values").bounding_box()
        assert values
        assert values["x"] >= 0
        assert values["x"] + values["width"] <= 420
        assert values["width"] > 300  # and so its lines are few
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    results = Axe().run(page, options={"resultTypes": ["violations"]})
    found = [v for v in results.response["violations"] if v["impact"] in ("serious", "critical")]
    assert found == []
