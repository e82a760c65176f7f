"""Workers: what the processes do, what they take and run, and how operators end them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.db.models import Case, F, When
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import Job, Worker
from ..models.worker import SILENT, Role
from ..queries.fleet import RunningClaim, count_claims_of_workers
from ..status import workers as worker_status
from ..status.deaths import Death, death_of
from ..status.display_limits import PAGE
from ..status.figures import memory_text, rate_text
from ..status.thresholds import CLOCK_SECONDS
from ..status.workers import WorkerState
from .app_list import Use
from .base import EmptyList
from .formats import (
    NOTHING,
    badge,
    duration_text,
    failure_text,
    moment,
    number,
    read_number,
    state_badge,
)
from .links import job_url, task_link, tenant_link
from .visible import sees_queues
from .worker_actions import DRAIN, STOP, WorkerActions

BADGES = {
    WorkerState.WORKING: "running",
    WorkerState.IDLE: "held",
    WorkerState.DRAINING: "scheduled",
    WorkerState.STOPPING: "scheduled",
    WorkerState.SILENT: "error",
}
"""The state of a job whose colours a worker's state has."""


@admin.register(Worker)
class WorkerAdmin(WorkerActions):
    """Shows worker processes; what an operator sets is that they drain or stop."""

    addable = False  # a worker registers when it starts
    use = Use.SYSTEM
    export_name = "workers"
    refreshes = True
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
    search_fields = ("host", "name", "version")
    search_help_text = _("A part of the host's or the worker's name, or of its version.")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("name", "role"),
                    ("host", "process_id", "supervisor_process_id"),
                    "takes",
                )
            },
        ),
        (
            _("Now"),
            {
                "fields": (
                    ("status", "heartbeat", "uptime"),
                    ("running", "memory"),
                    ("claims", "ends"),
                    "clock",
                    "last_failure",
                    "lacking",
                )
            },
        ),
    )
    readonly_fields = flatten_fieldsets(fieldsets)

    def load(self, rows: Sequence[Worker]) -> None:
        """Give each worker the number of jobs that it holds as `claims`."""
        found = count_claims_of_workers(self.using, [row.pk for row in rows]) if rows else {}
        for row in rows:
            row.claims = sum(found.get(row.pk, ()))  # type: ignore[attr-defined]

    @admin.display(description=_("worker"), ordering="name")
    def process(self, worker: Worker) -> SafeString:
        what = f"{worker.host} · {worker.pid}"
        if worker.role != Role.WORKER:
            what = f"{worker.get_role_display()} {worker.executor} · {what}"
        return format_html("{}<br><small>{}</small>", worker.name, what)

    @admin.display(description=_("process id"))
    def process_id(self, worker: Worker) -> str:
        return str(worker.pid)

    @admin.display(description=_("supervisor's process id"))
    def supervisor_process_id(self, worker: Worker) -> str:
        return str(worker.supervisor_pid)

    @admin.display(description=_("state"))
    def status(self, worker: Worker) -> SafeString:
        state = _state(worker)
        return badge(BADGES[state], state.label)

    @admin.display(
        description=_("state"),
        ordering=Case(
            When(heartbeat_at__lt=Now() - SILENT, then=0),
            When(stopping=True, then=1),
            When(draining=True, then=2),
            default=3,
        ),
    )
    def state(self, worker: Worker) -> SafeString:
        if _state(worker) != WorkerState.SILENT:
            return self.status(worker)
        since = moment(worker.heartbeat_at)
        return format_html("{}<br><small>{}</small>", self.status(worker), since)

    @admin.display(description=_("running"), ordering="-jobs_running")
    def running(self, worker: Worker) -> SafeString:
        if worker.role == Role.RUNNER:
            return number(_claims(worker))
        if worker.role == Role.DISPATCHER:
            room = gettext("sent, at most %d") % worker.threads
        else:
            room = gettext("of %(threads)d + %(coroutines)d async") % {
                "threads": worker.threads,
                "coroutines": worker.async_slots,
            }
        return format_html(
            '<span class="tq-number">{}</span><br><small>{}</small>', _claims(worker), room
        )

    @admin.display(description=_("memory"), ordering=F("rss_bytes").desc(nulls_last=True))
    def memory(self, worker: Worker) -> SafeString:
        return number(memory_text(worker.rss_bytes))

    @admin.display(description=_("claims/s"), ordering="-claims_per_second")
    def claims(self, worker: Worker) -> SafeString:
        return number(rate_text(worker.claims_per_second))

    @admin.display(description=_("jobs/s"), ordering="-jobs_per_second")
    def ends(self, worker: Worker) -> SafeString:
        return number(rate_text(worker.jobs_per_second))

    @admin.display(description=_("uptime"), ordering="-started_at")
    def uptime(self, worker: Worker) -> SafeString:
        return format_html(
            '<span class="tq-time" title="{}">{}</span><br><small>{}</small>',
            worker.started_at.isoformat(),
            duration_text(timezone.now() - worker.started_at),
            worker.version,
        )

    @admin.display(description=_("last heartbeat"))
    def heartbeat(self, worker: Worker) -> SafeString | str:
        return moment(worker.heartbeat_at)

    @admin.display(description=_("clock"))
    def clock(self, worker: Worker) -> str:
        ahead = worker.clock_ahead_seconds
        if abs(ahead) <= CLOCK_SECONDS:
            return gettext("agrees with the database server's")
        said = (
            gettext("%s s ahead of the database server's")
            if ahead > 0
            else gettext("%s s behind the database server's")
        )
        return said % f"{abs(ahead):,.1f}"

    @admin.display(description=_("queues served"))
    def takes(self, worker: Worker) -> str:
        if worker.role == Role.RUNNER:
            return gettext("jobs for the executor %s") % worker.executor
        parts = [
            gettext("queues: %s") % ", ".join(worker.queues)
            if worker.queues
            else gettext("all queues")
        ]
        if worker.role == Role.DISPATCHER:
            parts.append(gettext("of the executor %s") % worker.executor)
        if worker.exclude_queues:
            parts.append(gettext("but not: %s") % ", ".join(worker.exclude_queues))
        if worker.tenants:
            parts.append(gettext("tenants: %s") % ", ".join(worker.tenants))
        return "; ".join(parts)

    @admin.display(description=_("last error"), ordering=F("last_error_at").desc(nulls_last=True))
    def failure(self, worker: Worker) -> SafeString | str:
        return failure_text(worker.last_error, worker.last_error_at)

    @admin.display(description=_("last error"))
    def last_failure(self, worker: Worker) -> SafeString | str:
        if not worker.last_error:
            return NOTHING
        return format_html("{}<pre>{}</pre>", moment(worker.last_error_at), worker.last_error)

    @admin.display(description=_("unknown tasks"))
    def lacking(self, worker: Worker) -> str:
        return ", ".join(worker.unknown_tasks or ()) or NOTHING

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a worker, or how one has died that has no row any more."""
        number = read_number(unquote(object_id))
        if number is not None and self.has_view_or_change_permission(request):
            is_there = self.get_queryset(request).filter(pk=number).exists()
            death = None if is_there else death_of(self.using, number)
            if death is not None:
                return self._past(request, death)
        return super().change_view(request, object_id, *args, **kwargs)

    def _past(self, request: HttpRequest, death: Death) -> HttpResponse:
        facts = [
            (gettext("cause of death"), death.cause),
            (gettext("died"), moment(death.at)),
            (gettext("host"), death.host),
            (gettext("version"), death.version),
        ]
        if death.started_at is not None:
            lived = duration_text(death.at - death.started_at)
            facts += [(gettext("started"), moment(death.started_at)), (gettext("uptime"), lived)]
        jobs = None
        if self.may_view_jobs(request):
            found = Job.objects.using(self.using).filter(pk__in=death.jobs[:PAGE]).order_by("-pk")
            jobs = [_past_row(job) for job in found]
        return self.page(
            request,
            "admin/tenantqueue/worker/past.html",
            death.name,
            facts=facts,
            jobs=jobs,
            more_jobs=max(0, len(death.jobs) - PAGE),
        )

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show a worker, and the jobs that it runs to those who may see jobs."""
        context |= {"show_save": False, "show_save_and_continue": False}
        worker = context.get("original")
        is_ours = worker is not None and worker.role != Role.RUNNER
        if is_ours and self.has_change_permission(request, worker):
            context["orders"] = [
                order for order in (DRAIN, STOP) if not getattr(worker, order.column)
            ]
        context["may_view_jobs"] = self.may_view_jobs(request)
        if worker is not None and context["may_view_jobs"]:
            claims = worker_status.list_running(self.using, worker.pk)
            linked = sees_queues(request)
            context["jobs"] = [_row(claim, linked=linked) for claim in claims]
            context["more_jobs"] = claims[0].of_worker - len(claims) if claims else 0
        return super().render_change_form(request, context, *args, **kwargs)


def _claims(worker: Worker) -> int:
    claims: int = worker.claims  # type: ignore[attr-defined]
    return claims


def _state(worker: Worker) -> WorkerState:
    return worker_status.state_of(worker, timezone.now(), _claims(worker))


def _past_row(job: Job) -> dict[str, Any]:
    return {
        "id": job.pk,
        "url": job_url(job.pk),
        "task": task_link(job.task),
        "badge": state_badge(job.state),
        "attempt": f"{job.attempt} / {job.max_attempts}",
    }


def _row(claim: RunningClaim, *, linked: bool) -> dict[str, Any]:
    return {
        "id": claim.id,
        "url": job_url(claim.id),
        "task": task_link(claim.task),
        "tenant": tenant_link(claim.tenant) if linked else claim.tenant or NOTHING,
        "queue": claim.queue or NOTHING,
        "badge": state_badge(claim.state),
        "attempt": f"{claim.attempt} / {claim.max_attempts}",
        "age": duration_text(claim.age_seconds),
    }
