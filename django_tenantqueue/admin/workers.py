"""Workers: what the processes do, what they take and run, and how operators end them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import Case, F, QuerySet, When
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..models import Worker
from ..operations import worker_control
from ..queries.fleet import RunningClaim
from ..status import workers as worker_status
from ..status.figures import memory_text, rate_text
from ..status.workers import WorkerState
from .base import EmptyList, TenantQueueModelAdmin, changed_columns
from .formats import NOTHING, breakable, duration_text, failure_text, moment, state_badge

BADGES = {
    WorkerState.WORKING: "success",
    WorkerState.IDLE: "created",
    WorkerState.DRAINING: "scheduled",
    WorkerState.STOPPING: "scheduled",
    WorkerState.SILENT: "error",
}
"""The state of a job whose colours a worker's state has."""


@admin.register(Worker)
class WorkerAdmin(TenantQueueModelAdmin[Worker]):
    """Shows worker processes; what an operator sets is that they drain or stop."""

    addable = False  # a worker registers when it starts
    export_name = "workers"
    empty_list = EmptyList(
        _("No worker is running."),
        _("Jobs wait until one does. Start it with"),
        "python manage.py runworker",
    )
    list_display = (
        "process",
        "state",
        "running",
        "memory",
        "claims",
        "ends",
        "takes",
        "uptime",
        "failure",
    )
    list_per_page = 100
    search_fields = ("host", "name")
    search_help_text = _("A part of the host's or the worker's name.")
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions = ("drain_selected", "stop_selected")
    fieldsets = (
        (None, {"fields": ("name", ("host", "pid", "supervisor_pid"), "takes")}),
        (
            _("Now"),
            {
                "fields": (
                    ("status", "heartbeat", "uptime"),
                    ("running", "memory"),
                    ("claims", "ends"),
                    "last_failure",
                )
            },
        ),
    )
    readonly_fields = (
        *(field.name for field in Worker._meta.fields),
        "status",
        "heartbeat",
        "uptime",
        "takes",
        "running",
        "memory",
        "claims",
        "ends",
        "last_failure",
    )

    @admin.display(description=_("worker"), ordering="name")
    def process(self, worker: Worker) -> SafeString:
        """Return the worker's name, host and process id."""
        return format_html("{}<br><small>{} · {}</small>", worker.name, worker.host, worker.pid)

    @admin.display(description=_("state"))
    def status(self, worker: Worker) -> SafeString:
        """Return what the worker is doing."""
        state = worker_status.state_of(worker, timezone.now())
        return format_html(
            '<span class="tq-state tq-state-{}">{}</span>', BADGES[state], state.label
        )

    @admin.display(
        description=_("state"),
        ordering=Case(
            When(heartbeat_at__lt=Now() - worker_status.SILENT, then=0),
            When(stopping=True, then=1),
            When(draining=True, then=2),
            default=3,
        ),
    )
    def state(self, worker: Worker) -> SafeString:
        """Return what the worker is doing, and, when it is silent, since when."""
        if worker_status.state_of(worker, timezone.now()) != WorkerState.SILENT:
            return self.status(worker)
        since = moment(worker.heartbeat_at)
        return format_html("{}<br><small>{}</small>", self.status(worker), since)

    @admin.display(description=_("running"), ordering="-jobs_running")
    def running(self, worker: Worker) -> SafeString:
        """Return how many jobs ran at the last heartbeat, and how many could."""
        room = gettext("of %(threads)d + %(coroutines)d async") % {
            "threads": worker.threads,
            "coroutines": worker.async_slots,
        }
        return format_html(
            '<span class="tq-number">{}</span><br><small>{}</small>', worker.jobs_running, room
        )

    @admin.display(description=_("memory"), ordering=F("rss_bytes").desc(nulls_last=True))
    def memory(self, worker: Worker) -> SafeString:
        """Return how much memory the process has."""
        return _number(memory_text(worker.rss_bytes))

    @admin.display(description=_("claims/s"), ordering="-claims_per_second")
    def claims(self, worker: Worker) -> SafeString:
        """Return how often the worker asks for jobs."""
        return _number(rate_text(worker.claims_per_second))

    @admin.display(description=_("jobs/s"), ordering="-jobs_per_second")
    def ends(self, worker: Worker) -> SafeString:
        """Return how many jobs the worker ends in a second."""
        return _number(rate_text(worker.jobs_per_second))

    @admin.display(description=_("uptime"), ordering="-started_at")
    def uptime(self, worker: Worker) -> SafeString:
        """Return for how long the process has been running, and which version."""
        return format_html(
            '<span class="tq-time" title="{}">{}</span><br><small>{}</small>',
            worker.started_at.isoformat(),
            duration_text(timezone.now() - worker.started_at),
            worker.version,
        )

    @admin.display(description=_("last heartbeat"))
    def heartbeat(self, worker: Worker) -> SafeString | str:
        """Return when the process last gave a sign of life."""
        return moment(worker.heartbeat_at)

    @admin.display(description=_("queues served"))
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

    @admin.display(description=_("last error"), ordering=F("last_error_at").desc(nulls_last=True))
    def failure(self, worker: Worker) -> SafeString | str:
        """Return the beginning of what went wrong last, and when it did."""
        return failure_text(worker.last_error, worker.last_error_at)

    @admin.display(description=_("last error"))
    def last_failure(self, worker: Worker) -> SafeString | str:
        """Return all of what went wrong last, and when it did."""
        if not worker.last_error:
            return NOTHING
        return format_html("{}<pre>{}</pre>", moment(worker.last_error_at), worker.last_error)

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

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a worker with the jobs that it runs, to those who may see jobs."""
        worker = context.get("original")
        context["may_view_jobs"] = self.may_view_jobs(request)
        if worker is not None and context["may_view_jobs"]:
            claims = worker_status.list_running(self.using, worker.pk)
            context["jobs"] = [_row(claim) for claim in claims]
            context["more_jobs"] = claims[0].of_worker - len(claims) if claims else 0
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.action(
        permissions=["change"], description=_("Drain: end what runs, claim nothing more, stop")
    )
    def drain_selected(self, request: HttpRequest, queryset: QuerySet[Worker]) -> None:
        """Let workers end what they run and then stop."""
        done, late = self._order(request, queryset, "draining", worker_control.drain)
        text = ngettext("%d worker drains.", "%d workers drain.", done) % done
        self._say(request, text, done, late)

    @admin.action(
        permissions=["change"], description=_("Stop: drain for the shutdown timeout at most")
    )
    def stop_selected(self, request: HttpRequest, queryset: QuerySet[Worker]) -> None:
        """Let workers drain for as long as their shutdown timeout, and then stop."""
        done, late = self._order(request, queryset, "stopping", worker_control.stop)
        text = ngettext("%d worker stops:", "%d workers stop:", done) % done
        text += " " + gettext("what still runs after the shutdown timeout starts again elsewhere.")
        self._say(request, text, done, late)

    def _order(
        self,
        request: HttpRequest,
        queryset: QuerySet[Worker],
        column: str,
        operation: Callable[..., list[int]],
    ) -> tuple[int, int]:
        """Set a column; return how many workers it was new to, and how many it was not."""
        workers = list(queryset)
        ids = frozenset(operation([worker.pk for worker in workers], using=self.using))
        done = [worker for worker in workers if worker.pk in ids]
        self.log_for(request, done, changed_columns([gettext("%s no → yes") % gettext(column)]))
        return len(done), len(workers) - len(done)

    def _say(self, request: HttpRequest, text: str, done: int, late: int) -> None:
        if late:
            text += " " + gettext("%d did so already, or stopped meanwhile.") % late
        self.message_user(request, text, messages.SUCCESS if done else messages.WARNING)


def _number(text: str) -> SafeString:
    return format_html('<span class="tq-number">{}</span>', text)


def _row(claim: RunningClaim) -> dict[str, Any]:
    """Return what the page of a worker shows of a job that it runs."""
    return {
        "id": claim.id,
        "url": reverse("admin:tenantqueue_job_change", args=[claim.id]),
        "name": breakable(claim.name),
        "where": f"{claim.tenant or NOTHING} / {claim.queue or NOTHING}",
        "badge": state_badge(claim.state),
        "attempt": f"{claim.attempt} / {claim.max_attempts}",
        "age": duration_text(claim.age_seconds),
    }
