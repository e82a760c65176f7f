"""Monitors: how far each is, tuned in the list, and the details of one by their states."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.formats import localize
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..exceptions import TransitionRefused
from ..models import ConcurrentJobMonitor, Job
from ..operations import monitor_control
from ..operations.monitor_control import DETAILS_SHOWN, list_details
from ..status.monitor_progress import Progress, progress_of
from .base import EmptyList, jobs_hidden
from .confirmation import confirm
from .export import download
from .filters import CancelledFilter, TenantFilter
from .formats import (
    NOTHING,
    duration_text,
    exact_text,
    moment,
    moment_text,
    read_number,
    state_badge,
)
from .live_admin import TunedAdmin
from .monitor_export import details_table, download_links

LABELS = {
    "waiting": _("waits for its session"),
    "running": _("running"),
    "paused": _("paused"),
    "stopped": _("stopped"),
    "open": _("open"),
    "ending": _("ending"),
    "ended": _("ended"),
    "cancelling": _("is being cancelled"),
    "cancelled": _("cancelled"),
}
COLOURS = {
    "running": "running",
    "paused": "error",
    "stopped": "error",
    "ending": "running",
    "ended": "success",
}
"""Statuses that look like a state of a job."""
PARTS = {
    "running": _("running"),
    "ready": _("ready"),
    "retrying": _("waiting for another attempt"),
    "in_line": _("in line"),
    "aside": _("set aside by their tasks"),
    "failed": _("failed"),
    "cancelled": _("cancelled"),
    "done": _("done"),
}
"""What a detail can be, as counted by Progress."""


def _now(monitor: ConcurrentJobMonitor) -> Progress:
    now: Progress = monitor.now  # type: ignore[attr-defined]
    return now


def status_badge(now: Progress) -> SafeString:
    """Return what a monitor does as a coloured label, with the reason as its tooltip."""
    return format_html(
        '<span class="tq-state tq-state-{}" title="{}">{}</span>',
        COLOURS.get(now.status, "held"),
        now.reason,
        LABELS[now.status],
    )


def share_bar(now: Progress) -> SafeString:
    """Return a bar of what has succeeded, failed, was cancelled, and runs, and the share ended."""
    if not now.total:
        return format_html('<span class="tq-quiet">{}</span>', gettext("no details"))
    ended = (("success", now.done), ("error", now.failed), ("held", now.cancelled))
    parts = (*ended, ("running", now.running))
    return format_html(
        '<span class="tq-share" role="img" aria-label="{}">{}</span> '
        '<span class="tq-number tq-share-text">{} %</span>',
        _in_words(now),
        format_html_join(
            "",
            '<span class="tq-share-{}" style="width: {}%"></span>',
            ((name, f"{100 * count / now.total:.2f}") for name, count in parts if count),
        ),
        f"{now.percent:.0f}",
    )


def _in_words(now: Progress) -> str:
    counts = ((label, getattr(now, name)) for name, label in PARTS.items())
    return ", ".join(f"{localize(count)} {label}" for label, count in counts if count)


@admin.register(ConcurrentJobMonitor)
class ConcurrentJobMonitorAdmin(TunedAdmin[ConcurrentJobMonitor]):
    """Tunes monitors live: a change takes effect within a second, whatever waits."""

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
        "No further detail of these monitors starts until you resume them. Details that run go on."
    )
    list_display = (
        "title",
        "overview",
        "paused",
        "parallel",
        "interval",
        "priority",
    )
    list_display_links = ("title",)
    list_editable = ("parallel", "interval", "priority", "paused")
    list_filter = ("paused", CancelledFilter, TenantFilter)
    list_per_page = 25
    search_fields = ("name",)
    search_help_text = _("A part of the name, or a monitor's number, as in #12.")
    ordering = ("-id",)
    actions = (*TunedAdmin.actions, "retry_selected", "cancel_selected")
    readonly_fields = (
        *("tenant", "name", "status", "reason", "share", "end", "details"),
        *("callback", "session_key", "created_by", "created_at", "cancelled_at"),
    )
    fieldsets = (
        (None, {"fields": (("tenant", "name"), "status", "reason", "share", "end")}),
        (
            _("Takes effect within a second"),
            {"fields": ("parallel", "interval", "priority", "paused", "stop_after_failures")},
        ),
        (_("Details"), {"fields": ("details",)}),
        (
            _("About"),
            {"fields": ("callback", "session_key", "created_by", "created_at", "cancelled_at")},
        ),
    )

    def load(self, rows: Sequence[ConcurrentJobMonitor]) -> None:
        """Give each monitor its progress as `now`."""
        found = progress_of(rows)
        for row in rows:
            row.now = found[row.pk]  # type: ignore[attr-defined]

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> ConcurrentJobMonitor | None:
        """Return a monitor with its progress, and the state of the details to show."""
        monitor = super().get_object(request, object_id, from_field)
        if monitor is not None:
            chosen = request.GET.get("details", "")
            monitor.part = chosen if chosen in PARTS else _first_part(_now(monitor))  # type: ignore[attr-defined]
        return monitor

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
        """Return the pages, and the download of a monitor's details."""
        view = self.admin_site.admin_view(self.export_details_view)
        name = "tenantqueue_concurrentjobmonitor_details"
        return [path("<int:monitor_id>/details/<str:form>/", view, name=name), *super().get_urls()]

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
        """Return whose it is and what it is called."""
        return format_html(
            '<span class="tq-number">#{}</span> {}<br><small>{}</small>',
            monitor.pk,
            monitor.name,
            monitor.tenant or NOTHING,
        )

    @admin.display(description=_("status"))
    def status(self, monitor: ConcurrentJobMonitor) -> SafeString:
        """Return what it does."""
        return status_badge(_now(monitor))

    @admin.display(description=_("reason"))
    def reason(self, monitor: ConcurrentJobMonitor) -> str:
        """Return why it does that."""
        return _now(monitor).reason or NOTHING

    @admin.display(description=_("progress"))
    def share(self, monitor: ConcurrentJobMonitor) -> SafeString:
        """Return how much of it has ended."""
        return share_bar(_now(monitor))

    @admin.display(description=_("progress"))
    def overview(self, monitor: ConcurrentJobMonitor) -> SafeString:
        """Return what it does, how much has ended, and how many details failed."""
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

    def pace(self, monitor: ConcurrentJobMonitor) -> str:
        """Return how many details end in a second, or a minute."""
        pace = _now(monitor).pace
        if pace is None:
            return NOTHING
        if pace.per_second >= 1:
            return gettext("%s a second") % f"{pace.per_second:.3g}"
        return gettext("%s a minute") % f"{60 * pace.per_second:.3g}"

    @admin.display(description=_("expected end"))
    def end(self, monitor: ConcurrentJobMonitor) -> SafeString | str:
        """Return when it is likely to end, and in which range."""
        now = _now(monitor)
        if now.ends_at is None or now.ends_at_earliest is None:
            return NOTHING
        latest = now.ends_at_latest
        return format_html(
            '<time class="tq-time" datetime="{}" title="{}">{}</time>'
            '<br><small class="tq-time">{}</small><br><small class="tq-time">{}</small>',
            now.ends_at.isoformat(),
            exact_text(now.ends_at),
            moment_text(now.ends_at),
            f"{moment_text(now.ends_at_earliest)} … {moment_text(latest) if latest else '?'}",
            self.pace(monitor),
        )

    @admin.display(description=_("callback"))
    def callback(self, monitor: ConcurrentJobMonitor) -> SafeString | str:
        """Return the job that runs after the last detail."""
        if not monitor.may_view_jobs:  # type: ignore[attr-defined]
            return jobs_hidden()
        job = Job.objects.using(self.using).find(monitor.anchor_id)
        if job is None:
            return NOTHING
        return format_html("{} {} {}", _job_link(job.pk), job.name, state_badge(job.state))

    @admin.display(description=_("by state"))
    def details(self, monitor: ConcurrentJobMonitor) -> SafeString:
        """Return the details in the chosen state, with links to the other states."""
        part: str = monitor.part  # type: ignore[attr-defined]
        now = _now(monitor)
        tabs = format_html_join(
            " ",
            '<a href="?details={}" aria-current="{}">{} <span class="tq-number">{}</span></a>',
            (
                (
                    name,
                    "true" if name == part else "false",
                    label,
                    localize(getattr(now, name)),
                )
                for name, label in PARTS.items()
            ),
        )
        jobs = jobs_hidden()
        if monitor.may_view_jobs:  # type: ignore[attr-defined]
            shown = list_details(get_settings().database, monitor, part)
            jobs = _table(shown, getattr(now, part)) + download_links(monitor, part, PARTS[part])
        return format_html('<div class="tq-tabs">{}</div>{}', tabs, jobs)

    @admin.action(permissions=["change"], description=_("Retry failed details"))
    def retry_selected(
        self, request: HttpRequest, queryset: QuerySet[ConcurrentJobMonitor]
    ) -> None:
        """Put failed details into the line again."""
        for monitor in queryset:
            try:
                count = monitor_control.retry_failed_details(monitor.pk, using=self.using)
            except TransitionRefused as error:
                self.message_user(request, str(error), messages.WARNING)
                continue
            text = ngettext(
                "%(monitor)s: %(count)d failed detail is run again.",
                "%(monitor)s: %(count)d failed details are run again.",
                count,
            )
            level = messages.SUCCESS if count else messages.WARNING
            self.message_user(request, text % {"monitor": monitor, "count": count}, level)

    @admin.action(permissions=["change"], description=_("Cancel, with all that has not ended…"))
    def cancel_selected(
        self, request: HttpRequest, queryset: QuerySet[ConcurrentJobMonitor]
    ) -> HttpResponse | None:
        """Ask, then cancel monitors; maintenance cancels what is left, in steps."""
        what = gettext(
            "Details that wait are cancelled and never start. Running details are asked to stop. "
            "The callback does not run. A cancelled monitor cannot be resumed."
        )
        if page := confirm(self, request, queryset, gettext("Cancel"), what):
            return page
        marked = [
            monitor
            for monitor in queryset
            if monitor_control.mark_cancelled(monitor.pk, self.using)
        ]
        text = ngettext(
            "%d monitor is cancelled, its details within seconds.",
            "%d monitors are cancelled, their details within seconds.",
            len(marked),
        ) % len(marked)
        self.message_user(request, text, messages.SUCCESS if marked else messages.WARNING)
        return None


def _first_part(now: Progress) -> str:
    """Return which details a page shows first: what failed, else what runs, else the most."""
    for name in ("failed", "running", "ready", "in_line", "aside"):
        if getattr(now, name):
            return name
    return "done"


def _job_link(job_id: int) -> SafeString:
    url = reverse("admin:tenantqueue_job_change", args=[job_id])
    return format_html('<a href="{}" class="tq-number">#{}</a>', url, job_id)


def _table(jobs: Sequence[Job], count: int) -> SafeString:
    if not jobs:
        return format_html('<p class="tq-quiet">{}</p>', gettext("none"))
    rows = format_html_join(
        "",
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        (
            (
                _job_link(job.pk),
                job.name,
                state_badge(job.state),
                f"{job.attempt} / {job.max_attempts}",
                duration_text(job.run_duration) if job.run_duration else NOTHING,
                (job.last_error or {}).get("message", "")[:120] or moment(job.finished_at),
            )
            for job in jobs
        ),
    )
    more = ""
    if count > len(jobs):
        more = gettext("%(shown)d of %(count)s are shown") % {
            "shown": min(len(jobs), DETAILS_SHOWN),
            "count": localize(count),
        }
    return format_html(
        '<div class="tq-scroll"><table class="tq-line"><thead><tr><th>{}</th><th>{}</th><th>{}</th>'
        "<th>{}</th><th>{}</th><th>{}</th></tr></thead><tbody>{}</tbody></table></div>{}",
        gettext("job"),
        gettext("name"),
        gettext("state"),
        gettext("attempt"),
        gettext("took"),
        gettext("error, or when it ended"),
        rows,
        more,
    )
