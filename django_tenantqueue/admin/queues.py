"""Tenant queues: the list in which slots, weight and pause are edited, and one queue's page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..models import TenantQueue
from ..operations import control
from ..queries.control import QueueLoad
from ..status.figures import COUNTED_TO
from ..status.queue_loads import loads
from .base import EmptyList
from .filters import QueueNameFilter
from .formats import counted
from .live_admin import TunedAdmin


class QueueChangeList(ChangeList):
    """A page of tenant queues, with what runs and waits in those that it shows."""

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page, then count its jobs by one bounded statement."""
        super().get_results(request)
        attach_loads(get_settings().database, list(self.result_list))


def attach_loads(using: str, queues: list[TenantQueue]) -> None:
    """Give each queue its `load`."""
    found = loads(using, [queue.pk for queue in queues]) if queues else {}
    for queue in queues:
        queue.load = found.get(queue.pk, QueueLoad(queue.pk, 0, 0))  # type: ignore[attr-defined]


def jobs_link(queue: TenantQueue, state: str, text: str) -> SafeString:
    """Return a link to a queue's jobs in a state."""
    url = reverse("admin:tenantqueue_job_changelist")
    query = urlencode({"queue_id": str(queue.pk), "state": state})
    return format_html('<a href="{}?{}">{}</a>', url, query, text)


@admin.register(TenantQueue)
class TenantQueueAdmin(TunedAdmin[TenantQueue]):
    """Tunes tenant queues live: every change is read by the next claim, on every machine."""

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
    actions = ("pause_selected", "resume_selected", "retire_selected", "unretire_selected")
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

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> TenantQueue | None:
        """Return a queue with its load."""
        queue = super().get_object(request, object_id, from_field)
        if queue is not None:
            attach_loads(self.using, [queue])
        return queue

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Return the list that counts only what its page shows."""
        return QueueChangeList

    def get_fieldsets(self, request: HttpRequest, obj: TenantQueue | None = None) -> Any:
        """Return the parts of the form; a queue that is being added has no jobs yet."""
        return self.fieldsets if obj else self.fieldsets[:3]

    def get_readonly_fields(self, request: HttpRequest, obj: TenantQueue | None = None) -> Any:
        """Return what cannot be edited: a queue keeps its tenant and name for ever."""
        return ("tenant", "name", *self.readonly_fields) if obj else self.readonly_fields

    @admin.action(permissions=["change"], description=_("Pause: start no more of their jobs"))
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        """Pause queues."""
        self.switch(request, queryset, "paused", True, control.pause)

    @admin.action(permissions=["change"], description=_("Resume: start their jobs again"))
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        """Resume queues."""
        self.switch(request, queryset, "paused", False, control.resume)

    @admin.action(permissions=["change"], description=_("Retire: take no new jobs"))
    def retire_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        """Retire queues."""
        self.switch(request, queryset, "retired", True, self._retire(True))

    @admin.action(permissions=["change"], description=_("Take new jobs again"))
    def unretire_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        """Take queues back from retirement."""
        self.switch(request, queryset, "retired", False, self._retire(False))

    def _retire(self, retired: bool) -> Callable[..., int]:
        def tune(ids: list[int], *, using: str) -> int:
            for queue_id in ids:
                control.tune_queue(queue_id, using=using, retired=retired)
            return len(ids)

        return tune
