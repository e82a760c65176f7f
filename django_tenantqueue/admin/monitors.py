"""Monitors: how far each is, tuned in the list and on pages that refresh themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import ConcurrentJobMonitor, Job
from ..operations import monitor_control
from ..status.monitor_progress import Progress, progress_of
from .app_list import Use
from .base import EmptyList, jobs_hidden
from .export import download
from .filters import TENANT_FILTERS, CancelledFilter
from .formats import NOTHING, moment_text, read_number, state_badge
from .links import job_link
from .live_admin import TunedAdmin
from .monitor_actions import MonitorActions
from .monitor_details import details_table
from .monitor_page import live_context
from .monitor_words import PARTS, share_bar, status_badge


def _now(monitor: ConcurrentJobMonitor) -> Progress:
    now: Progress = monitor.now  # type: ignore[attr-defined]
    return now


def _has_ended(monitor: ConcurrentJobMonitor) -> bool:
    return _now(monitor).status in ("ended", "cancelled")


@admin.register(ConcurrentJobMonitor)
class ConcurrentJobMonitorAdmin(MonitorActions, TunedAdmin[ConcurrentJobMonitor]):
    """Tunes monitors live: a change takes effect within a second, whatever waits."""

    use = Use.WORK
    export_name = "monitors"
    addable = False  # code starts monitors
    empty_list = EmptyList(
        _("There are no monitors yet."),
        _("Code starts one with"),
        "ConcurrentJobMonitor.objects.start(…)",
    )
    tunable = monitor_control.TUNABLE
    operation = staticmethod(monitor_control.tune_monitor)
    pause = staticmethod(monitor_control.pause_monitors)
    resume = staticmethod(monitor_control.resume_monitors)
    pause_text = _(
        "No further details of these monitors start until you resume them. Running details "
        "continue."
    )
    list_display = ("title", "overview", "paused", "parallel", "interval_seconds", "priority")
    list_display_links = ("title",)
    list_editable = ("parallel", "interval_seconds", "priority", "paused")
    list_filter = ("paused", CancelledFilter, *TENANT_FILTERS)
    list_per_page = 25
    search_fields = ("name",)
    search_help_text = _("A part of the name, or a monitor's number, as in #12.")
    ordering = ("-id",)
    actions = (*TunedAdmin.actions, "retry_selected", "cancel_selected")
    readonly_fields = (
        *("tenant", "name", "callback"),
        *("session_key", "created_by", "created_at", "cancelled_at"),
    )
    fieldsets = (
        (
            _("Takes effect within a second"),
            {
                "fields": (
                    ("parallel", "interval_seconds"),
                    ("priority", "stop_after_failures"),
                    "paused",
                )
            },
        ),
        (
            _("About"),
            {
                "fields": (
                    ("tenant", "name"),
                    ("callback", "session_key"),
                    ("created_by", "created_at", "cancelled_at"),
                )
            },
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: ConcurrentJobMonitor | None = None) -> Any:
        """Return the parts of the page. What has ended feeds nothing more."""
        parts = super().get_fieldsets(request, obj)
        if obj is None or not _has_ended(obj):
            return parts
        return [(_("Settings"), parts[0][1]), *parts[1:]]

    def get_readonly_fields(
        self, request: HttpRequest, obj: ConcurrentJobMonitor | None = None
    ) -> Any:
        """Return the columns that cannot be edited: all of a monitor that has ended."""
        fixed = super().get_readonly_fields(request, obj)
        return (*self.tunable, *fixed) if obj and _has_ended(obj) else fixed

    def load(self, rows: Sequence[ConcurrentJobMonitor]) -> None:
        """Give each monitor its progress as `now`."""
        found = progress_of(rows)
        for row in rows:
            row.now = found[row.pk]  # type: ignore[attr-defined]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ConcurrentJobMonitor], search_term: str
    ) -> tuple[QuerySet[ConcurrentJobMonitor], bool]:
        """Find a monitor by its number, too, as pages show it."""
        found, duplicates = super().get_search_results(request, queryset, search_term)
        if search_term.startswith("#"):
            number = read_number(search_term[1:].strip())
            found |= queryset.filter(pk=-1 if number is None else number)
        return found, duplicates

    def get_urls(self) -> list[URLPattern]:
        name = "tenantqueue_concurrentjobmonitor"
        details = self.admin_site.admin_view(self.export_details_view)
        live = self.admin_site.admin_view(self.live_view)
        return [
            path("<int:monitor_id>/details/<str:form>/", details, name=f"{name}_details"),
            path("<int:monitor_id>/live/", live, name=f"{name}_live"),
            *super().get_urls(),
        ]

    def live_view(self, request: HttpRequest, monitor_id: int) -> HttpResponse:
        """Return what a monitor's page shows of its progress, for its own refresh."""
        context = {"live": self._live(request, self.shown_row(request, str(monitor_id)))}
        return TemplateResponse(
            request, "admin/tenantqueue/concurrentjobmonitor/live.html", context
        )

    def _live(self, request: HttpRequest, monitor: ConcurrentJobMonitor) -> dict[str, Any]:
        return live_context(
            self.admin_site,
            self.using,
            request,
            monitor,
            _now(monitor),
            may_retry=self.has_change_permission(request, monitor),
            sees_jobs=self.may_view_jobs(request),
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        monitor = context.get("original")
        if monitor is not None:
            context["live"] = self._live(request, monitor)
        return super().render_change_form(request, context, *args, **kwargs)

    def export_details_view(
        self, request: HttpRequest, monitor_id: int, form: str
    ) -> HttpResponseBase:
        """Send the details of a monitor: those of the tab that `details` names, or all."""
        monitor = self.get_queryset(request).filter(pk=monitor_id).first()
        allowed = self.has_view_or_change_permission(request, monitor)
        if not allowed or not self.may_view_jobs(request):
            raise PermissionDenied
        part = request.GET.get("details")
        if monitor is None or part not in (None, *PARTS):
            raise Http404
        return download(request, details_table(self.using, monitor, part), form)

    @admin.display(description=_("monitor"), ordering="-id")
    def title(self, monitor: ConcurrentJobMonitor) -> SafeString:
        return format_html(
            '<span class="tq-number">#{}</span> {}<br><small>{}</small>',
            monitor.pk,
            monitor.name,
            monitor.tenant or NOTHING,
        )

    @admin.display(description=_("progress"))
    def overview(self, monitor: ConcurrentJobMonitor) -> SafeString:
        now = _now(monitor)
        return format_html(
            "{} <small>{}</small><br>{}<br><small>{} / {}{}</small><br><small>{}</small>",
            status_badge(now),
            now.reason,
            share_bar(now),
            localize(now.total - now.left),
            localize(now.total),
            gettext(", %s failed") % localize(now.failed) if now.failed else "",
            gettext("ends %s") % moment_text(now.ends_at) if now.ends_at else "",
        )

    @admin.display(description=_("callback"))
    def callback(self, monitor: ConcurrentJobMonitor) -> SafeString | str:
        if not monitor.may_view_jobs:  # type: ignore[attr-defined]
            return jobs_hidden()
        job = Job.objects.using(self.using).find(monitor.anchor_id)
        if job is None:
            return NOTHING
        return format_html("{} {} {}", job_link(job.pk), job.task, state_badge(job.state))
