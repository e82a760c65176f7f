"""Tokens in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.django_db(transaction=True)
OpenPage = Callable[..., Page]


def test_secret_of_a_new_token_is_shown_whole(open_page: OpenPage) -> None:
    page = open_page("/admin/tenantqueue_api/apitoken/add/")
    page.fill("input[name=name]", "billing")
    page.fill("input[name=tenant]", "acme")
    page.click("input[name=_save]")

    secret = page.locator("#tq-token")
    expect(secret).to_have_value(re.compile("^tq_"))
    assert secret.evaluate("e => e.scrollWidth <= e.clientWidth")
