"""Tenant queues: the list in which slots, weight and pause are edited, and one queue's page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import TenantQueue
from ..operations import control
from ..queries.control import QueueLoad
from ..status.figures import COUNTED_TO
from ..status.queue_loads import loads
from .base import EmptyList
from .filters import QueueNameFilter
from .formats import counted
from .home import overview_view
from .live_admin import TunedAdmin


def jobs_link(queue: TenantQueue, state: str, text: str) -> SafeString:
    """Return a link to a queue's jobs in a state."""
    url = reverse("admin:tenantqueue_job_changelist")
    query = urlencode({"queue_id": str(queue.pk), "state": state})
    return format_html('<a href="{}?{}">{}</a>', url, query, text)


@admin.register(TenantQueue)
class TenantQueueAdmin(TunedAdmin[TenantQueue]):
    """Tunes tenant queues live: every change is read by the next claim, on every machine."""

    export_name = "tenant-queues"
    empty_list = EmptyList(
        _("There are no tenant queues yet."),
        _(
            "A queue appears here when the first job of a tenant is enqueued. To set its slots "
            "before that, add the queue yourself. A task enqueues with"
        ),
        ".delay()",
    )
    tunable = control.TUNABLE
    operation = staticmethod(control.tune_queue)
    pause = staticmethod(control.pause)
    resume = staticmethod(control.resume)
    pause_text = _(
        "No job of these queues starts until you resume them. Jobs that run go on, and new jobs "
        "are taken."
    )
    fixed = ("tenant", "name")
    list_display = (
        "tenant",
        "name",
        "running",
        "waiting",
        "num_slots",
        "weight",
        "max_per_second",
        "paused",
        "in_use",
    )
    list_display_links = ("tenant", "name")
    # a page of 100 rows posts 900 fields: Django takes 1,000
    list_editable = ("num_slots", "weight", "max_per_second", "paused")
    list_filter = ("paused", "retired", QueueNameFilter)
    search_fields = ("tenant", "name")
    search_help_text = _("A part of the tenant's or the queue's name.")
    ordering = ("tenant", "name")
    actions = (*TunedAdmin.actions, "retire_selected", "unretire_selected")
    readonly_fields = ("created_at", "running", "waiting")
    fieldsets = (
        (None, {"fields": (("tenant", "name"),)}),
        (
            _("Read by the next claim"),
            {"fields": ("num_slots", "weight", ("max_per_second", "burst"), "paused")},
        ),
        (_("New jobs"), {"fields": ("max_waiting", "retired")}),
        (_("Now"), {"fields": ("running", "waiting", "created_at")}),
    )

    def get_urls(self) -> list[Any]:
        """Return the addresses of this model's pages, and that of the first page's content."""
        view = self.admin_site.admin_view(partial(overview_view, model_admin=self))
        return [path("overview/", view, name="tenantqueue_overview"), *super().get_urls()]

    def load(self, rows: Sequence[TenantQueue]) -> None:
        """Give each queue its `load`."""
        found = loads(self.using, [row.pk for row in rows]) if rows else {}
        for row in rows:
            row.load = found.get(row.pk, QueueLoad(row.pk, 0, 0))  # type: ignore[attr-defined]

    @admin.display(description=_("running"))
    def running(self, queue: TenantQueue) -> SafeString:
        """Return how many slots are taken."""
        load = queue.load  # type: ignore[attr-defined]
        full = queue.num_slots is not None and load.running >= queue.num_slots
        return format_html(
            '<span class="tq-number{}" title="{}">{}</span>',
            " tq-full" if full and load.running else "",
            gettext("no limit")
            if queue.num_slots is None
            else gettext("%(running)s of %(slots)s slots are taken")
            % {"running": counted(load.running, COUNTED_TO), "slots": queue.num_slots},
            jobs_link(queue, "active", counted(load.running, COUNTED_TO)),
        )

    @admin.display(description=_("waiting"))
    def waiting(self, queue: TenantQueue) -> SafeString:
        """Return how many jobs are ready and wait for a slot, and how many may."""
        load = queue.load  # type: ignore[attr-defined]
        text = counted(load.waiting, COUNTED_TO)
        full = queue.max_waiting is not None and load.waiting >= queue.max_waiting
        return format_html(
            '<span class="tq-number{}" title="{}">{}</span>',
            " tq-full" if full else "",
            gettext("It takes no new jobs: max waiting is reached") if full else "",
            jobs_link(
                queue,
                "created",
                text if queue.max_waiting is None else f"{text} / {queue.max_waiting:,}",
            ),
        )

    @admin.display(description=_("new jobs"), ordering="retired")
    def in_use(self, queue: TenantQueue) -> SafeString | str:
        """Return whether the queue takes new jobs."""
        if not queue.retired:
            return gettext("taken")
        return format_html('<span class="tq-state">{}</span>', gettext("retired"))

    @admin.action(permissions=["change"], description=_("Retire: take no new jobs"))
    def retire_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        """Retire queues."""
        self.switch(request, queryset, "retired", True, control.retire)

    @admin.action(permissions=["change"], description=_("Take new jobs again"))
    def unretire_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        """Take queues back from retirement."""
        self.switch(request, queryset, "retired", False, control.reopen)
