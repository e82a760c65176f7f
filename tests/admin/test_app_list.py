"""Menus list the dashboard and the lists of the package by use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.contrib.auth.models import AnonymousUser, User
from django.test import Client, RequestFactory

from django_tenantqueue.admin.app_list import TITLES, ListsByUse, by_use
from django_tenantqueue.admin.base import TenantQueueModelAdmin
from tests.admin.conftest import operator, url_of
from tests.factories import make_job, make_queue, make_worker

__all__ = ["operator"]
pytestmark = pytest.mark.django_db
HOME = "/admin/tenantqueue/"
CORE = {
    "Tenant queue: work": ["Dashboard", "Jobs", "Monitors", "Sessions", "Tenant queues"],
    "Tenant queue: limits": ["Task controls", "User limits"],
    "Tenant queue: system": ["Changes", "Maintenance tasks", "Muted problems", "Workers"],
}


def menu_of(client: Client, url: str) -> dict[str, list[str]]:
    """Return the names of the lists in the menu of a page, by group. The dashboard ends with it."""
    page = client.get(url).content.decode()
    found: dict[str, list[str]] = {}
    for part in page.split("<caption>")[1:]:
        part = part.partition("</table>")[0]
        names = re.findall(r'<a href="[^"]*"[^>]*>([^<]*)</a>', part)
        found[names[0]] = [name for name in names[1:] if name not in ("Add", "Change", "View")]
    return found


def test_menu_of_each_page_groups_the_lists_by_use(admin_client: Client) -> None:
    queue = make_queue()
    pages = [
        HOME,
        url_of("tenantqueue", "changelist"),
        url_of("tenantqueue", "add"),
        url_of("tenantqueue", "change", queue.pk),
        url_of("tenantqueue", "history", queue.pk),
        url_of("job", "change", make_job(queue).pk),
    ]

    menus = [menu_of(admin_client, page) for page in pages]

    ours = [{name: menu[name] for name in CORE} for menu in menus]
    assert ours == [CORE] * len(pages)
    assert "Tenant queue" not in menus[0]
    assert [title for title in menus[0] if title in TITLES.values()] == [
        title for title in map(str, TITLES.values()) if title in menus[0]
    ]


def test_every_list_of_the_package_has_a_group() -> None:
    ours = [site for site in admin.site._registry.values() if _is_ours(site)]

    assert len(ours) > 8
    assert not [type(site).__name__ for site in ours if site.use is None]


def _is_ours(site: Any) -> bool:
    name = type(site).__module__
    return isinstance(site, TenantQueueModelAdmin) and name.startswith("django_tenantqueue.")


def test_user_sees_the_lists_and_the_dashboard_that_they_may_view(
    operator: Callable[..., Client],
) -> None:
    page = url_of("worker", "changelist")

    assert menu_of(operator("view_worker"), page) == {"Tenant queue: system": ["Workers"]}
    both = menu_of(operator("view_worker", "view_tenantqueue"), page)
    assert both["Tenant queue: work"] == ["Dashboard", "Tenant queues"]


def test_site_with_the_mixin_groups_its_index(admin_user: User) -> None:
    class Site(ListsByUse, AdminSite):
        pass

    site = Site(name="admin")
    site._registry = admin.site._registry
    request = RequestFactory().get("/admin/")
    request.user = admin_user

    found = site.get_app_list(request)

    names = {app["name"]: [entry["name"] for entry in app["models"]] for app in found}
    assert {title: names[title] for title in CORE} == CORE
    assert by_use(found, site) == found
    assert [app["app_label"] for app in site.get_app_list(request, "tenantqueue")] == [
        "tenantqueue"
    ]
    request.user = AnonymousUser()
    assert site.get_app_list(request) == []


def test_every_tile_links_to_what_it_counts(
    admin_client: Client, operator: Callable[..., Client]
) -> None:
    make_worker()
    page = admin_client.get(HOME).content.decode()
    found = re.findall(r'<h3><a href="([^"]*)">([^<]*)</a></h3>', page)
    tiles = {title: url for url, title in found}

    assert page.count('<div class="tq-tile') == len(tiles) == 8
    for url in tiles.values():
        assert admin_client.get(url.replace("&amp;", "&")).status_code == 200
    assert tiles["Ready jobs"].endswith("/job/?state=ready")
    assert tiles["Workers"] == url_of("worker", "changelist")
    limited = operator("view_tenantqueue").get(HOME).content.decode()
    assert url_of("job", "changelist") not in limited
    assert re.findall(r"<h3><a href=.*?>(.*?)</a></h3>", limited) == ["Wait, p95", "Slots taken"]
