"""What the admin's own templates use."""

from __future__ import annotations

from typing import Any

from django import template
from django.apps import apps

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
    return [app for app in listed if app["app_label"] in ours]


@register.inclusion_tag("admin/tenantqueue/home.html", takes_context=True)
def tenantqueue_home(context: dict[str, Any]) -> dict[str, Any]:
    """Show the problems, the fleet, the queues and the tasks on the dashboard."""
    return home_context(context["request"])
