"""Retention rules in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from django_tenantqueue.contrib.retention.control import make_retention_rule
from tests.browser.fitting import pages_that_fit
from tests.factories import make_job

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/admin/tenantqueue_retention/retentionrule/"
OpenPage = Callable[..., Page]


@pytest.mark.heavy
@pytest.mark.parametrize(("width", "scheme"), [(420, "dark"), (1400, "light")])
def test_pages_fit_and_are_accessible(open_page: OpenPage, width: int, scheme: str) -> None:
    make_retention_rule(keep_days=90, arguments_days=7)
    make_retention_rule(task="mail.tasks.*", state="success", keep_days=3)
    row = make_retention_rule(
        tenant="acme" * 20, task="a_package.tasks." + "n" * 90, results_days=1
    )
    job = make_job(state="error", args={"__tenantqueue__": "removed"}, result_ref="-")
    page = open_page(LIST, viewport={"width": width, "height": 900}, color_scheme=scheme)

    pages = {
        "list": LIST,
        "page": f"{LIST}{row.pk}/change/",
        "add": f"{LIST}add/",
        "job": f"/admin/tenantqueue/job/{job.pk}/change/",
    }
    for name in pages_that_fit(page, pages):
        found = Axe().run(page).response["violations"]
        assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == [], name
