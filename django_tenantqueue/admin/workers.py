"""Workers: which processes run, what they take, and draining them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..models import Worker
from ..operations import fleet
from .base import TenantQueueModelAdmin, changed_columns
from .formats import duration_text, moment

SILENT = timedelta(seconds=30)
"""A worker without a heartbeat for so long is shown as silent."""


@admin.register(Worker)
class WorkerAdmin(TenantQueueModelAdmin[Worker]):
    """Shows worker processes; the one thing an operator sets is that they drain."""

    list_display = (
        "name",
        "host",
        "pid",
        "status",
        "version",
        "uptime",
        "heartbeat",
        "takes",
        "room",
    )
    list_filter = ("draining",)
    list_per_page = 100
    search_fields = ("host", "name")
    search_help_text = _("A part of the host's or the worker's name.")
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions = ("drain_selected",)
    fields = (
        "name",
        ("host", "pid", "supervisor_pid"),
        "version",
        ("status", "uptime", "heartbeat"),
        "takes",
        ("threads", "async_slots"),
    )

    @admin.display(description=_("state"))
    def status(self, worker: Worker) -> SafeString:
        """Return what the worker is doing, as far as its row tells."""
        now = timezone.now()
        if now - worker.heartbeat_at > SILENT:
            kind, text = "error", gettext("silent")
        elif worker.draining:
            kind, text = "scheduled", gettext("draining")
        elif worker.sleeping_until is not None and worker.sleeping_until > now:
            kind, text = "created", gettext("idle")
        else:
            kind, text = "success", gettext("working")
        return format_html('<span class="tq-state tq-state-{}">{}</span>', kind, text)

    @admin.display(description=_("uptime"), ordering="-started_at")
    def uptime(self, worker: Worker) -> SafeString:
        """Return for how long the process has been running."""
        return format_html(
            '<span title="{}">{}</span>',
            worker.started_at.isoformat(),
            duration_text(timezone.now() - worker.started_at),
        )

    @admin.display(description=_("last heartbeat"), ordering="heartbeat_at")
    def heartbeat(self, worker: Worker) -> SafeString | str:
        """Return when the process last gave a sign of life."""
        return moment(worker.heartbeat_at)

    @admin.display(description=_("takes"))
    def takes(self, worker: Worker) -> str:
        """Return which queues and tenants the worker serves."""
        parts = [
            gettext("queues: %s") % ", ".join(worker.queues)
            if worker.queues
            else gettext("all queues")
        ]
        if worker.exclude_queues:
            parts.append(gettext("but not: %s") % ", ".join(worker.exclude_queues))
        if worker.tenants:
            parts.append(gettext("tenants: %s") % ", ".join(worker.tenants))
        return "; ".join(parts)

    @admin.display(description=_("threads"), ordering="threads")
    def room(self, worker: Worker) -> str:
        """Return how much the worker runs at once: in threads, and as coroutines."""
        return gettext("%(threads)d + %(coroutines)d async") % {
            "threads": worker.threads,
            "coroutines": worker.async_slots,
        }

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: a worker signs on when it starts."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Worker | None = None) -> Any:
        """Return everything: workers write their rows themselves."""
        return (
            *(field.name for field in Worker._meta.fields),
            "status",
            "uptime",
            "heartbeat",
            "takes",
        )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show a worker, with nothing to save."""
        nothing = {"show_save": False, "show_save_and_continue": False}
        return super().changeform_view(
            request, object_id, form_url, {**nothing, **(extra_context or {})}
        )

    @admin.action(
        permissions=["change"], description=_("Drain: end what runs, claim nothing more, stop")
    )
    def drain_selected(self, request: HttpRequest, queryset: QuerySet[Worker]) -> None:
        """Let workers end what they run and then stop."""
        workers = list(queryset)
        ids = fleet.drain([worker.pk for worker in workers], using=self.using)
        drained = [worker for worker in workers if worker.pk in ids]
        self.log_for(request, drained, changed_columns([gettext("draining no → yes")]))
        text = ngettext("%d worker drains.", "%d workers drain.", len(drained)) % len(drained)
        if late := len(workers) - len(drained):
            text += " " + gettext("%d did so already, or stopped meanwhile.") % late
        self.message_user(request, text, messages.SUCCESS if drained else messages.WARNING)
