"""Two databases in two tabs of the admin: each tab shows and changes its own; one that is down."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import override_settings
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from django_tenantqueue.models import Job
from tests.contrib.shards import conftest
from tests.contrib.shards.conftest import ALIASES, sharded, tenant_of
from tests.testapp.tasks import echo

NEEDS = "shards"
pytestmark = pytest.mark.django_db(transaction=True)
MIDDLEWARE = "django_tenantqueue.contrib.shards.middleware.ShardMiddleware"
JOBS = "/admin/tenantqueue/job/"
HOME = "/admin/tenantqueue/"
OpenPage = Callable[..., Page]

migrated, schemas, shards, down = (
    conftest.migrated,
    conftest.schemas,
    conftest.shards,
    conftest.down,
)


def sees_its_tenant(user: User) -> list[str] | None:
    return None if user.is_superuser else [tenant_of("eu1")]


@pytest.fixture
def live_server(schemas: None) -> Iterator[LiveServer]:
    """Serve with the middleware, which a server reads at its start."""
    with override_settings(MIDDLEWARE=[*settings.MIDDLEWARE, MIDDLEWARE]):
        server = LiveServer("localhost")
        yield server
        server.stop()


@pytest.fixture
def jobs(shards: None) -> list[Job]:
    """Have a job in each database."""
    return [echo.using(tenant=tenant_of(alias)).delay(alias) for alias in ALIASES]


def test_each_tab_shows_and_changes_its_database(open_page: OpenPage, jobs: list[Job]):
    first = open_page(f"{HOME}?shard=us0")
    other = first.context.new_page()
    first.get_by_role("link", name="Jobs", exact=True).first.click()
    other.goto(HOME)
    other.get_by_role("navigation", name="Database").get_by_role("link", name="eu1").click()
    expect(other.locator("#site-name")).to_contain_text("eu1")
    expect(other.get_by_role("link", name=tenant_of("eu1"), exact=True).first).to_be_visible()

    expect(first.locator("#site-name")).to_contain_text("us0")
    expect(first.get_by_text(f"#{jobs[0].pk}").first).to_be_visible()
    first.locator("#action-toggle").check()
    first.locator("select[name=action]").select_option("cancel_selected")
    first.click("button[name=index]")
    first.locator(".submit-row input[type=submit]").click()
    expect(first.locator(".messagelist")).to_be_visible()

    assert [job.refresh().state for job in jobs] == ["cancelled", "ready"]
    first.goto(f"{JOBS}{jobs[1].pk}/change/")
    expect(first.locator("#site-name")).to_contain_text("eu1")


def test_limited_user_sees_a_tenant_in_its_database_alone(open_page: OpenPage, jobs: list[Job]):
    page = open_page("/admin/login/")
    user = User.objects.get(username="admin-0")
    User.objects.filter(pk=user.pk).update(is_superuser=False)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="tenantqueue"))
    visible = f"{__name__}.{sees_its_tenant.__name__}"
    with override_settings(TENANTQUEUE={**sharded(*ALIASES), "VISIBLE_TENANTS": visible}):
        page.goto(f"{JOBS}?shard=us0")
        expect(page.get_by_text("There are no jobs")).to_be_visible()
        page.get_by_role("navigation", name="Database").get_by_role("link", name="eu1").click()
        expect(page.get_by_text(f"#{jobs[1].pk}").first).to_be_visible()
        page.goto("about:blank")  # it refreshes itself


def test_page_of_a_database_that_is_down_leads_to_the_others(
    open_page: OpenPage, jobs: list[Job], down: str
):
    page = open_page(f"{JOBS}?shard={down}")

    expect(page.locator("h1")).to_have_text("The database “ap2” is down")
    expect(page.get_by_role("navigation", name="Database")).to_be_visible()
    page.get_by_role("link", name="us0").click()
    expect(page.get_by_text(f"#{jobs[0].pk}").first).to_be_visible()
    page.goto("about:blank")
