"""The product's pages: choose an airline, request a report, watch it, read it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from django_tenantqueue import Priority, Unique
from django_tenantqueue.models import ConcurrentJobMonitor, Job, TenantQueue
from django_tenantqueue.reports import read_loads
from django_tenantqueue.states import ACTIVE
from django_tenantqueue.status.monitor_progress import Progress, progress_of
from django_tenantqueue.status.your_jobs import your_jobs

from . import logbooks, plans
from .models import Airline
from .reports import BY_NAME, BY_TASK, REPORTS, TITLES, Report

RECENT_JOBS = 12
RECENT_MONITORS = 3
ASKED_TWICE = Unique("until_executed", ttl=600)
"""A second request gets the same job, for ten minutes or until it has ended."""


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A tenant queue with what is in it."""

    name: str
    slots: int
    paused: bool
    running: int
    waiting: int

    @property
    def marks(self) -> list[bool]:
        """One mark for each slot, True when it is taken."""
        return [n < self.running for n in range(max(self.slots, self.running))]


@dataclass(frozen=True, slots=True)
class MonitorLine:
    """A monitor with its progress."""

    monitor: ConcurrentJobMonitor
    progress: Progress


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job as the list shows it."""

    job: Job
    title: str


def _queue_lines(queues: list[TenantQueue]) -> list[QueueLine]:
    counted = read_loads(queues)
    return [
        QueueLine(
            queue.name,
            queue.num_slots,
            queue.paused,
            counted[queue.pk].running,
            counted[queue.pk].waiting,
        )
        for queue in queues
    ]


def _queues(airline: Airline) -> list[TenantQueue]:
    return _in_order(TenantQueue.objects.filter(tenant=airline.pk))


def _in_order(queues: Iterable[TenantQueue]) -> list[TenantQueue]:
    """Return queues as the plans name them: the light reports' first."""
    order = list(plans.FREE.slots)
    known = [queue for queue in queues if queue.name in order]
    return sorted(known, key=lambda queue: order.index(queue.name))


def _jobs(airline: Airline) -> QuerySet[Job]:
    return Job.objects.filter(queue__in=_queues(airline)).select_related("queue")


def _recent(airline: Airline) -> list[JobLine]:
    """Return running, then waiting, then finished jobs, the newest first."""
    queues = [queue for queue in _queues(airline) if queue.name != plans.LOGBOOKS]
    unfinished = Job.objects.unfinished().filter(queue__in=queues)
    running = list(unfinished.active().order_by("-id")[:RECENT_JOBS])
    others = unfinished.exclude(state__in=ACTIVE).order_by("-id")
    waiting = list(others[: max(0, RECENT_JOBS // 2 - len(running))])
    # Queue by queue: each look is served by the history's index (queue, id).
    ended = [
        job
        for queue in queues
        for job in Job.objects.finished().filter(queue=queue).order_by("-id")[:RECENT_JOBS]
    ]
    ended.sort(key=lambda job: job.pk, reverse=True)
    chosen = [*running, *waiting, *ended][: max(RECENT_JOBS, len(running) + RECENT_JOBS // 2)]
    return [JobLine(job, _title(job)) for job in chosen]


def _title(job: Job) -> str:
    return TITLES.get(job.task, job.task)


@require_safe
def choose_airline(request: HttpRequest) -> HttpResponse:
    """Show every airline with its plan and what its queues are doing."""
    return render(request, "flights/airlines.html", {"airlines": _all_airlines()})


@never_cache
@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Return the part of the start page that is refreshed."""
    return render(request, "flights/overview.html", {"airlines": _all_airlines()})


def _all_airlines() -> list[dict[str, Any]]:
    by_tenant: dict[str, list[TenantQueue]] = {}
    for queue in TenantQueue.objects.all():
        by_tenant.setdefault(queue.tenant, []).append(queue)
    return [
        {"airline": airline, "queues": _queue_lines(_in_order(by_tenant.get(airline.pk, [])))}
        for airline in Airline.objects.order_by("-flight_count")
    ]


@require_safe
def dashboard(request: HttpRequest, airline: str) -> HttpResponse:
    """Show the reports that can be requested, and the airline's recent jobs."""
    return _dashboard(request)


def _dashboard(
    request: HttpRequest, refused: forms.Form | None = None, report: Report | None = None
) -> HttpResponse:
    entries = [
        {"report": entry, "form": refused if entry is report else entry.form(auto_id=False)}
        for entry in REPORTS
    ]
    context = {
        "airline": request.airline,  # type: ignore[attr-defined]
        "entries": entries,
        **_recent_context(request),
    }
    return render(request, "flights/dashboard.html", context, status=400 if refused else 200)


@require_POST
def request_report(request: HttpRequest, airline: str, report: str) -> HttpResponse:
    """Enqueue a report; answer at once with its page, or with JSON for a program."""
    entry = BY_NAME.get(report)
    if entry is None:
        raise Http404(f"There is no report {report!r}.")
    wants_json = request.get_preferred_type(["text/html", "application/json"]) == "application/json"
    form = entry.form(request.POST, auto_id=False)
    if not form.is_valid():
        if wants_json:
            return JsonResponse({"errors": form.errors}, status=400)
        return _dashboard(request, form, entry)
    # A user waits for it. TENANT_RESOLVER sets the tenant: the request's airline.
    options: dict[str, Any] = {"created_by": _visitor(request), "unique": ASKED_TWICE}
    if entry.task.options.priority == Priority.USER:
        options["priority"] = Priority.USER_HIGH
    job = entry.task.using(**options).delay(**form.cleaned_data)
    page = reverse("flights:job", args=[airline, job.pk])
    if wants_json:
        answer = {
            "id": job.pk,
            "duplicate": job.duplicate,
            "status_url": job.status_url,
            "page_url": page,
        }
        return JsonResponse(answer, status=202)
    if job.duplicate:
        messages.info(request, "This report was already requested. Here it is.")
    return redirect(page)


def _visitor(request: HttpRequest) -> str:
    return request.user.get_username() or "visitor"


@require_POST
def request_logbooks(request: HttpRequest, airline: str) -> HttpResponse:
    """Start a monitor over the airline's planes."""
    logbooks.write_logbooks(request.airline, _visitor(request))  # type: ignore[attr-defined]
    return redirect("flights:dashboard", airline)


@never_cache
@require_safe
def recent_jobs(request: HttpRequest, airline: str) -> HttpResponse:
    """Return the part of the dashboard that is refreshed."""
    return render(request, "flights/recent.html", _recent_context(request))


def _recent_context(request: HttpRequest) -> dict[str, Any]:
    airline: Airline = request.airline  # type: ignore[attr-defined]
    return {
        "airline": airline,
        "queues": _queue_lines(_queues(airline)),
        "jobs": _recent(airline),
        "monitors": _monitors(airline),
    }


def _monitors(airline: Airline) -> list[MonitorLine]:
    newest = logbooks.newest(airline, RECENT_MONITORS)
    progress = progress_of(newest)
    return [MonitorLine(monitor, progress[monitor.pk]) for monitor in newest]


@never_cache
@require_safe
def your_reports(request: HttpRequest, airline: str) -> HttpResponse:
    """Show the reports that this visitor has requested for the airline."""
    page = your_jobs(
        user=_visitor(request),
        tenant=airline,
        before=request.GET.get("before"),
        size=10,
        titles=TITLES,
        url_of=lambda job: reverse("flights:job", args=[airline, job.pk]),
        errors=True,
    )
    context = {"airline": request.airline, "page": page}  # type: ignore[attr-defined]
    return render(request, "flights/yours.html", context)


@never_cache
@require_safe
def show_job(request: HttpRequest, airline: str, job_id: int) -> HttpResponse:
    """Show one of the airline's jobs; the page polls its status and draws its result."""
    job = get_object_or_404(_jobs(request.airline), pk=job_id)  # type: ignore[attr-defined]
    report = BY_TASK.get(job.task)
    context = {
        "airline": request.airline,  # type: ignore[attr-defined]
        "job": job,
        "title": _title(job),
        "parameters": report.describe(job.args.get("kwargs", {})) if report else (),
    }
    return render(request, "flights/job.html", context)
