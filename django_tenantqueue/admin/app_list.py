"""The lists of the package in menus: grouped by use, with the dashboard first."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import TenantQueue

_R = TypeVar("_R", bound=HttpResponse)

if TYPE_CHECKING:
    _Site = AdminSite
else:
    _Site = object

HOME = "Dashboard"
"""The `object_name` of the entry of the dashboard, which is no model."""


class Use(StrEnum):
    """What the rows of a list are for, in the order of menus."""

    WORK = "work"
    LIMITS = "limits"
    AUTOMATION = "automation"
    ACCESS = "access"
    SYSTEM = "system"


TITLES = {
    Use.WORK: _("Tenant queue: work"),
    Use.LIMITS: _("Tenant queue: limits"),
    Use.AUTOMATION: _("Tenant queue: automation"),
    Use.ACCESS: _("Tenant queue: access"),
    Use.SYSTEM: _("Tenant queue: system"),
}


def by_use(app_list: list[dict[str, Any]], site: AdminSite) -> list[dict[str, Any]]:
    """Return a list of AdminSite.get_app_list() with the lists of the package in groups by use.

    The groups stand where the first of their apps stood. Other apps and lists stay as they are.
    """
    groups: dict[Use, list[dict[str, Any]]] = {use: [] for use in Use}
    found: list[dict[str, Any]] = []
    place = None
    for app in app_list:
        left = []
        for entry in app["models"]:
            use = getattr(site._registry.get(entry["model"]), "use", None)
            if use is None:
                left.append(entry)
            elif entry["object_name"] != HOME:
                groups[use].append(entry)
                place = len(found) if place is None else place
        if left or not app["models"]:
            found.append({**app, "models": left})
    if place is None:
        return app_list
    url = reverse("admin:app_list", args=["tenantqueue"], current_app=site.name)
    queues = [entry for entry in groups[Use.WORK] if entry["model"] is TenantQueue]
    home = [_home(entry, url) for entry in queues if entry["admin_url"]]
    groups[Use.WORK] = [*home, *groups[Use.WORK]]
    found[place:place] = [_group(use, url, entries) for use, entries in groups.items() if entries]
    return found


def _home(queues: dict[str, Any], url: str) -> dict[str, Any]:
    # with its query the address is no part of the path of other pages, which would mark it there
    shown = {"name": gettext("Dashboard"), "object_name": HOME, "view_only": True}
    return {**queues, **shown, "admin_url": f"{url}?hours=1", "add_url": None}


def _group(use: Use, url: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(entries, key=lambda entry: (entry["object_name"] != HOME, entry["name"]))
    return {
        "name": str(TITLES[use]),
        "app_label": f"tenantqueue_{use}",
        "app_url": f"{url}?hours=1",
        "has_module_perms": True,
        "models": ordered,
    }


class ListsByUse(_Site):
    """A mixin of an AdminSite: its index and menus show the lists of the package by use."""

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Return Django's list, by use if it is of all apps."""
        found = super().get_app_list(request, app_label)
        return found if app_label else by_use(found, self)


def with_menu(response: _R, site: AdminSite) -> _R:
    """Return a response whose menu shows the lists of the package by use."""
    context = getattr(response, "context_data", None) or {}
    if "available_apps" in context:
        context["available_apps"] = by_use(context["available_apps"], site)
    return response
