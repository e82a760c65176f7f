"""What the admin's own templates use."""

from __future__ import annotations

from typing import Any

from django import template

from ..admin.filters import typed_forms
from ..admin.home import home_context

register = template.Library()
register.filter(typed_forms)


@register.inclusion_tag("admin/tenantqueue/home.html", takes_context=True)
def tenantqueue_home(context: dict[str, Any]) -> dict[str, Any]:
    """Show the problems, the fleet, the queues and the tasks on the app's first page."""
    return home_context(context["request"])
