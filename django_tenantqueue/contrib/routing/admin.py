"""Routings: the queue of new jobs of a task, a method or a category."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from ...admin.app_list import Use
from ...admin.base import EmptyList
from ...admin.filters import TENANT_FILTERS
from ...admin.formats import breakable
from ...admin.live_admin import TunedAdmin
from ...admin.live_forms import SingleTuneForm, TuneForm
from ...admin.tenant_input import tenant_text
from ...exceptions import QueueRetired, UnknownQueue
from . import services
from .models import Routing


class RoutingListForm(TuneForm):
    """The queue of a routing."""

    def clean(self) -> dict[str, Any] | None:
        """Check the queue, unless another operator has changed the row."""
        cleaned = super().clean()
        queue = self.cleaned_data.get("queue")
        tenant = self.instance.tenant if self.instance.pk else self.cleaned_data.get("tenant")  # type: ignore[attr-defined]
        is_named = self.instance.pk or "tenant" in self.cleaned_data
        if queue and is_named and "queue" in self.changed_data and not self.errors:
            try:
                services.check_queue(tenant, queue)
            except (UnknownQueue, QueueRetired) as error:
                self.add_error("queue", str(error))
        return cleaned


class RoutingForm(RoutingListForm, SingleTuneForm):
    """The form of one routing's page."""


@admin.register(Routing)
class RoutingAdmin(TunedAdmin[Routing]):
    """Changes apply to jobs that are enqueued a second later."""

    form = RoutingForm
    list_form = RoutingListForm
    use = Use.AUTOMATION
    export_name = "routings"
    empty_list = EmptyList(
        _("There are no routings."),
        _(
            "Jobs go to the queue that their call or their task names. Add a routing to send new "
            "jobs of a task to another queue. A call that names a queue is not routed:"
        ),
        '.using(queue="…")',
    )
    list_display = ("title", "queue")
    list_display_links = ("title",)
    list_editable = services.TUNABLE
    list_filter = TENANT_FILTERS
    search_fields = ("tenant", "pattern", "queue")
    search_help_text = _("A part of the tenant, of the task or of the queue.")
    ordering = ("tenant", "pattern")
    actions = ()
    fixed = ("tenant", "pattern")
    tunable = services.TUNABLE
    add = staticmethod(services.add_routing)
    operation = staticmethod(services.tune_routing)
    delete = staticmethod(services.delete_routings)
    readonly_fields = ("created_at",)
    fieldsets = (
        (
            _("Scope"),
            {
                "fields": ("tenant", "pattern"),
                "description": _(
                    "The most specific routing decides: one of the tenant before one of every "
                    "tenant, then a whole name, then the longest name with “*”."
                ),
            },
        ),
        (_("New jobs"), {"fields": services.TUNABLE}),
        (_("Now"), {"fields": ("created_at",)}),
    )

    @admin.display(description=_("jobs"), ordering="tenant")
    def title(self, routing: Routing) -> SafeString | str:
        return breakable(f"{tenant_text(routing.tenant)} / {routing.pattern}")
