"""What the admin's own templates use."""

from __future__ import annotations

from typing import Any

from django import template
from django.apps import apps
from django.contrib import admin

from ..admin.app_list import Use, by_use
from ..admin.filters import typed_forms
from ..admin.home import home_context

register = template.Library()
register.filter(typed_forms)


@register.filter
def with_features(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the apps of an admin site that are this package, or add features to it."""
    ours = [
        config.label
        for config in apps.get_app_configs()
        if config.name == "django_tenantqueue" or hasattr(config, "tenantqueue_features")
    ]
    groups = [f"tenantqueue_{use}" for use in Use]
    return [app for app in listed if app["app_label"] in (*ours, *groups)]


@register.simple_tag(takes_context=True)
def group_menu(context: dict[str, Any]) -> str:
    """Let the menu of this page, which comes later, show the lists of the package by use."""
    view = context["request"].resolver_match.func
    listed = context["available_apps"]
    listed[:] = by_use(listed, getattr(view, "admin_site", admin.site))
    return ""


@register.inclusion_tag("admin/tenantqueue/home.html", takes_context=True)
def tenantqueue_home(context: dict[str, Any]) -> dict[str, Any]:
    """Show the problems, the fleet, the queues and the tasks on the dashboard."""
    return home_context(context["request"])
