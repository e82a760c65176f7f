"""The dashboard: problems, fleet, queues and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..features import Feature, Problem, gathered, hooks
from ..histogram import percentile
from ..models import (
    Change,
    ConcurrentJobMonitor,
    Duty,
    Job,
    Mute,
    Session,
    TaskControl,
    TenantQueue,
    UserLimit,
    Worker,
)
from ..operations import control
from ..queries.fleet import HeldJobs
from ..status.display_limits import COUNTED_TO, PERIODS, TOTAL_COUNTED_TO
from ..status.figures import duration_text, rate_text
from ..status.held import cause_text, is_late
from ..status.overview import Overview, QueueLine, TaskLine, read_overview
from ..status.thresholds import LATE_SECONDS
from ..status.workers import WorkerState
from .acting import acting
from .charts import Tile, gauge, sparkline
from .formats import NOTHING, breakable, counted
from .links import jobs_url, task_url, tenant_link
from .live_forms import SingleTuneForm, column_label
from .mutes import may_mute, mute_url, muted_text, unmute
from .visible import may, sees_queues, visible_tenants

COLUMNS = ("num_slots", "weight", "paused")
"""What the page changes of a queue."""
RANGES = {1: _("1 hour"), 24: _("24 hours"), 168: _("7 days")}
LAST = {1: _("in the last minute"), 24: _("in the last hour"), 168: _("in the last 3 hours")}
LISTS: dict[str, type[Model]] = {
    "workers": Worker,
    "queues": TenantQueue,
    "jobs": Job,
    "sessions": Session,
    "users": UserLimit,
    "tasks": TaskControl,
    "monitors": ConcurrentJobMonitor,
    "duties": Duty,
    "changes": Change,
}
"""Condition.where of the core → the model of the list."""


class QueueForm(SingleTuneForm):
    """The columns of a queue that the page changes, beside the values that it showed."""

    tunable = COLUMNS

    class Meta:
        model = TenantQueue
        fields = COLUMNS


def read_hours(request: HttpRequest) -> int:
    """Return the range that the address asks for; 1 hour when it asks for none that exists."""
    text = request.GET.get("hours", "")
    return int(text) if text in {str(hours) for hours in PERIODS} else 1


def home_context(request: HttpRequest) -> dict[str, Any]:
    """Return what the page shows to this user."""
    if not sees_queues(request):
        return {"shown": False}
    using = get_settings().database
    shown = context_of(request, visible_tenants(request), reverse("admin:tenantqueue_overview"))
    of_apps = gathered(Feature.home_problems, request, using=using)
    for kind, muted in (("problems", False), ("muted", True)):
        shown[kind] = [line for line in of_apps if bool(line.get("muted")) is muted] + shown[kind]
    shown["request"] = request
    shown["panels"] = gathered(Feature.admin_panels, request, using=using)
    return shown


def context_of(
    request: HttpRequest, tenants: Collection[str] | None, url: str, tenant: str | None = None
) -> dict[str, Any]:
    """Return what a page shows of some tenants; None: all. `url`: what refreshes it.

    `tenant`: the one that the page is about, if any.
    """
    hours = read_hours(request)
    using = get_settings().database
    overview = read_overview(using, hours, tenants, idle=tenant is not None)
    sees_jobs = may(request, "view", Job)
    about: dict[str, str | int] = {} if tenant is None else {"tenant": tenant}
    address = f"{url}?{urlencode({**about, 'hours': hours})}"
    return {
        "shown": True,
        "overview": overview,
        "hours": hours,
        "ranges": [
            (f"?{urlencode({**about, 'hours': n})}", label, n == hours)
            for n, label in RANGES.items()
        ],
        "url": address,
        "refresh_url": address,
        "problems": [
            _problem(request, found, mutes=tenant is None) for found in overview.report.problems
        ],
        "muted": [_problem(request, found) for found in overview.report.muted],
        "may_unmute": may(request, "delete", Mute),
        "tiles": _tiles(
            overview,
            sees_workers=overview.report.whole and may(request, "view", Worker),
            sees_jobs=sees_jobs,
        ),
        "held": [_held(one) for one in overview.report.held],
        "queues": [_queue(line) for line in overview.queues],
        "tasks": [_task(line, hours, about) for line in overview.tasks] if sees_jobs else None,
        "may_change": may(request, "change", TenantQueue),
        "sees_jobs": sees_jobs,
        "figures": get_settings().figures,
    }


def failures_url(**query: str | int) -> str:
    """Return the address of the list of failures."""
    return f"{reverse('admin:tenantqueue_failures')}?{urlencode(query)}"


def _problem(request: HttpRequest, problem: Problem, *, mutes: bool = True) -> dict[str, Any]:
    """Return a line. `mutes`: it leads to the form that mutes the problem, of all tenants."""
    text, muted = problem.text, problem.muted
    if problem.where != "failures":
        text = text[:1].upper() + text[1:]
    line: dict[str, Any] = {"text": text, "url": _problem_url(request, problem)}
    if muted is not None:
        return {**line, "muted": muted_text(muted), "ids": muted.ids}
    if mutes and may_mute(request, problem.objects):
        line["mute_url"] = mute_url(problem.code)
    return line


def _problem_url(request: HttpRequest, problem: Problem) -> str:
    if problem.where == "failures":
        return failures_url(task=problem.task) if may(request, "view", Job) else ""
    model = _list_of(problem.where)
    if model is None or not (may(request, "view", model) or may(request, "change", model)):
        return ""
    opts = model._meta
    url = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
    return f"{url}?{problem.filter}" if problem.filter else url


def _list_of(where: str) -> type[Model] | None:
    lists = dict(LISTS)
    for hook in hooks(Feature.lists):
        lists |= hook()
    return lists.get(where)


def _tiles(overview: Overview, *, sees_workers: bool, sees_jobs: bool) -> list[Tile]:
    report, counts = overview.report, overview.counts
    last = str(LAST[overview.hours])
    need = report.need
    blocked = max(report.counts.ready - need.startable, 0)
    waits = [duration_text(overview.wait(share)) for share in (0.5, 0.95, 0.99)]
    failing = overview.counts.failing

    def jobs(state: str) -> str:
        return jobs_url(state=state) if sees_jobs else ""

    queues = reverse("admin:tenantqueue_tenantqueue_changelist")
    tiles = [
        Tile(
            gettext("Jobs started per second"),
            rate_text(overview.started_per_second),
            last,
            sparkline(overview.started, gettext("Jobs started over time")),
            url=jobs("active"),
        ),
        Tile(
            gettext("Jobs ended per second"),
            rate_text(overview.ended_per_second),
            last,
            sparkline(overview.ended, gettext("Jobs ended over time")),
            url=jobs("finished"),
        ),
        Tile(
            gettext("Wait, p95"),
            waits[1],
            gettext("median: %(half)s, p99: %(most)s") % {"half": waits[0], "most": waits[2]},
            sparkline(overview.waits, gettext("Wait (p95) over time")),
            url=queues,
        ),
        Tile(
            gettext("Failed runs"),
            _failing_text(failing),
            gettext("%(failed)s ended in error, %(retried)s were retried")
            % {"failed": f"{counts.failed:,}", "retried": f"{counts.retried:,}"},
            sparkline(overview.failed, gettext("Failed runs over time"), "tq-spark-error"),
            alarming=bool(counts.failed),
            url=failures_url(hours=overview.hours) if sees_jobs else "",
        ),
        Tile(
            gettext("Slots taken"),
            f"{counted(overview.taken, TOTAL_COUNTED_TO)} / {overview.slots:,}",
            gettext("of the queues that have a limit and are not paused"),
            url=queues,
        ),
        Tile(
            gettext("Ready jobs"),
            counted(report.counts.ready, report.counted_to),
            gettext("%(short)s lack a worker, %(blocked)s in full or paused queues")
            % {
                "short": counted(need.startable, COUNTED_TO),
                "blocked": counted(blocked, report.counted_to),
            }
            if report.whole
            else "",
            alarming=bool(need.startable) and (need.oldest_wait_seconds or 0) > LATE_SECONDS,
            url=jobs("ready"),
        ),
        Tile(
            gettext("Held jobs"),
            counted(sum(asdict(report.counts.held).values()), report.counted_to),
            gettext("the first for %s") % duration_text(report.held[0].wait_seconds)
            if report.held
            else "",
            alarming=any(map(is_late, report.held)),
            url=jobs("held"),
        ),
    ]
    if sees_workers:
        states = Counter(worker.state for worker in report.workers)
        note = ", ".join(f"{states[s]} {s.label}" for s in WorkerState if states[s])
        silent = states[WorkerState.SILENT]
        alarming = bool(silent) or not report.workers
        url = reverse("admin:tenantqueue_worker_changelist")
        number = str(len(report.workers))
        tiles.append(Tile(gettext("Workers"), number, note, alarming=alarming, url=url))
    return tiles


def _held(held: HeldJobs) -> dict[str, Any]:
    return {
        "tenant": tenant_link(held.tenant),
        "queue": held.queue,
        "url": reverse("admin:tenantqueue_tenantqueue_change", args=[held.queue_id]),
        "jobs_url": jobs_url(queue_id=held.queue_id, state="held"),
        "cause": breakable(cause_text(held)),
        "jobs": counted(held.jobs, COUNTED_TO),
        "wait": duration_text(held.wait_seconds),
        "late": is_late(held),
    }


def _failing_text(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f} %"


def _queue(line: QueueLine) -> dict[str, Any]:
    queue, load = line.queue, line.load
    free = None if queue.num_slots is None else max(queue.num_slots - queue.active, 0)
    label = gettext("%(running)s running, %(waiting)s ready, %(free)s free") % {
        "running": counted(queue.active, COUNTED_TO),
        "waiting": counted(load.waiting, COUNTED_TO),
        "free": gettext("no limit") if free is None else f"{free:,}",
    }
    return {
        "queue": queue,
        "tenant": queue.tenant or NOTHING,
        "tenant_link": tenant_link(queue.tenant),
        "url": reverse("admin:tenantqueue_tenantqueue_change", args=[queue.id]),
        "jobs_url": jobs_url(queue_id=queue.id),
        "wait": duration_text(queue.wait_seconds),
        "late": (queue.wait_seconds or 0) > LATE_SECONDS,
        "running": counted(queue.active, COUNTED_TO),
        "waiting": counted(load.waiting, COUNTED_TO),
        "slots": "" if queue.num_slots is None else queue.num_slots,
        "gauge": gauge(queue.active, queue.num_slots, load.waiting, label),
        "failing": _failing_text(line.counts.failing),
        "has_failed": bool(line.counts.failed),
        "ended": line.counts.ended,
    }


def _task(line: TaskLine, hours: int, about: Mapping[str, str | int]) -> dict[str, Any]:
    return {
        "name": breakable(line.task),
        "url": task_url(line.task, hours=hours, **about),
        # the list of failures has no filter for jobs without a tenant
        "failed_url": ""
        if about.get("tenant") == ""
        else failures_url(hours=hours, task=line.task, **about),
        "ended": line.counts.ended,
        "mean": duration_text(line.mean_run_seconds),
        "p95": duration_text(percentile(line.counts.runs, 0.95)),
        "sum": duration_text(line.counts.run_seconds),
        "failing": _failing_text(line.counts.failing),
        "has_failed": bool(line.counts.failures),
        "spark": sparkline(line.points, gettext("Runs ended over time")),
    }


def overview_view(request: HttpRequest, model_admin: admin.ModelAdmin[TenantQueue]) -> HttpResponse:
    """Return the page's content for its own refresh, or change a queue from it."""
    if request.method == "POST":
        url = f"{reverse('admin:app_list', args=['tenantqueue'])}?hours={read_hours(request)}"
        if "unmute" not in request.POST:
            return tune(request, model_admin, url)
        unmute(request, request.POST.getlist("unmute"))
        return HttpResponseRedirect(url)
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET", "POST"])
    context = home_context(request)
    if not context["shown"]:
        raise PermissionDenied
    return TemplateResponse(request, "admin/tenantqueue/home.html", context)


def tune(
    request: HttpRequest, model_admin: admin.ModelAdmin[TenantQueue], url: str
) -> HttpResponse:
    """Write the changed columns, unless another user has changed them in the meantime.

    `url`: the page that follows.
    """
    back = HttpResponseRedirect(url)
    if not model_admin.has_change_permission(request):
        raise PermissionDenied
    queue = model_admin.get_object(request, request.POST.get("queue", ""))
    if queue is None:
        messages.error(request, gettext("This queue does not exist any more."))
        return back
    name = f"{queue.tenant or NOTHING} / {queue.name}"
    using = get_settings().database
    with acting(request), transaction.atomic(using=using):
        form = QueueForm(request.POST, instance=queue)
        if form.is_valid() and form.changes:
            values = {column: new for column, (_old, new) in form.changes.items()}
            control.tune_queue(queue.pk, using=using, **values)
            messages.success(request, f"{name}: {'; '.join(form.change_texts())}")
    moved = [column for column in form.errors if form.has_error(column, "conflict")]
    if moved:
        labels = ", ".join(column_label(TenantQueue, column) for column in moved)
        told = gettext("%(queue)s: %(columns)s was changed meanwhile. Nothing was saved.")
        messages.warning(request, told % {"queue": name, "columns": labels})
    else:
        for error in [e for errors in form.errors.values() for e in errors]:
            messages.error(request, f"{name}: {error}")
    return back
