"""A real browser that is logged in to the admin."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from playwright.sync_api import Browser, Page, expect, sync_playwright

from .chromium import ADVICE, get_chromium

expect.set_options(timeout=30_000)  # a stalled machine is not what these tests are about

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


ANSWERED_SECONDS = 5.0
BUSY = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND state IN ('active', 'idle in transaction')"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield Chromium. Where none can be had the tests are skipped, and fail if CI is set.

    It lives no longer than a module: Playwright keeps an event loop in this thread, in which the
    tests of other modules could not start one of their own, and which Django must be told about.
    """
    program = get_chromium()
    if program is None:
        stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        stop(f"no browser: {ADVICE}")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, live_server: Any) -> Iterator[Callable[..., Page]]:
    contexts = []

    def log_in() -> str:
        user = User.objects.create_superuser(f"admin-{len(contexts)}")
        session = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        assert session.session_key
        return session.session_key

    def open_page(path: str, **options: Any) -> Page:
        context = browser.new_context(base_url=live_server.url, **options)
        key = log_in()
        contexts.append(context)
        context.add_cookies(
            [{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": live_server.url}]
        )
        page = context.new_page()
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    _wait_until_answered()


def _wait_until_answered() -> None:
    """Wait for requests that pages have left: the tables are emptied next."""
    end = time.monotonic() + ANSWERED_SECONDS
    while time.monotonic() < end:
        with connection.cursor() as cursor:
            cursor.execute(BUSY)
            if not cursor.fetchone()[0]:
                return
        time.sleep(0.05)
