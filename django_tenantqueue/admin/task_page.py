"""The page of a task: waits and run times, failures, and its limits over all tenants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..exceptions import InvalidOption
from ..histogram import percentile
from ..models import Change, Job, TaskControl
from ..operations import task_control as operations
from ..queries.figures import Counts
from ..queries.tasks import TaskLoad
from ..status.changes import changes_of
from ..status.display_limits import COUNTED_TO, NAMED, PERIODS
from ..status.failures import figure_name, read_failures
from ..status.figures import duration_text, rate_text
from ..status.job_pages import QUEUES_APART, queue_ids
from ..status.task_figures import TaskFigures, read_task_figures
from ..text import is_storable
from .acting import acting
from .change_text import described
from .charts import Tile, histogram, sparkline
from .confirmation import ask, is_answered
from .failures import Filter, shown_line
from .formats import NOTHING, breakable, counted
from .home import LAST, RANGES, failures_url, read_hours
from .links import jobs_url, task_url, tenant_link
from .live_forms import SingleTuneForm
from .tenant_input import NONE
from .visible import may, sees_queues, visible_tenants

if TYPE_CHECKING:
    from .job_actions import JobActions

LIMITS = ("num_slots", "max_per_second", "burst")
"""What the form of the page changes."""


class LimitsForm(SingleTuneForm):
    """The limits of a task, also of one that has no control yet."""

    tunable = LIMITS

    class Meta:
        model = TaskControl
        fields = LIMITS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.show_hidden_initial = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks for. `tenant` None is all that the user may see, as is `queues`."""

    task: str
    hours: int
    tenant: str | None
    queues: tuple[int, ...] | None

    @property
    def url(self) -> str:
        """The address of the page."""
        return task_url(self.task, hours=self.hours, **self.about)

    @property
    def about(self) -> dict[str, str]:
        """The tenant as a parameter of the address."""
        return {} if self.tenant is None else {"tenant": self.tenant}


def _read(request: HttpRequest) -> Asked:
    """Raise Http404 for a name that no task has, and for a tenant that the user may not see."""
    task, tenant = request.GET.get("task", ""), request.GET.get("tenant")
    tenants, queues = visible_tenants(request), None
    if not task.strip() or not is_storable(task + (tenant or "")):
        raise Http404
    if tenant is not None:
        if tenants is not None and tenant not in tenants:
            raise Http404
        tenants = frozenset({tenant})
    if tenants is not None:
        queues = queue_ids(get_settings().database, tenants=tenants)
    return Asked(task, read_hours(request), tenant, queues)


def task_view(request: HttpRequest, model_admin: JobActions) -> HttpResponse:
    """Return the page of the task that the address names, or change its limits."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    asked = _read(request)
    if request.method not in ("GET", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    control = TaskControl.objects.using(model_admin.using).filter(task=asked.task).first()
    if request.method == "GET":
        return _page(request, model_admin, asked, control)
    if not _may_control(request, control):
        raise PermissionDenied
    with acting(request):
        if "_limits" in request.POST:
            return _save(request, model_admin, asked, control)
        return _switch(request, model_admin, asked, control)


def _may_control(request: HttpRequest, control: TaskControl | None) -> bool:
    """Whether the user may change the limits of a task; they are those of all tenants."""
    is_allowed = may(request, "change", TaskControl)
    return is_allowed and (control is not None or may(request, "add", TaskControl))


def _save(
    request: HttpRequest, model_admin: JobActions, asked: Asked, control: TaskControl | None
) -> HttpResponse:
    using = model_admin.using
    with transaction.atomic(using=using):
        try:
            row = operations.make_control(using, asked.task)
        except InvalidOption as error:
            model_admin.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(asked.url)
        form = LimitsForm(request.POST, instance=row)
        if form.is_valid() and form.changes:
            values = {name: new for name, (_old, new) in form.changes.items()}
            operations.tune_control(row.pk, using=using, **values)
        else:
            transaction.set_rollback(True, using=using)  # an unused control is not kept
    if form.errors:
        return _page(request, model_admin, asked, control, form)
    if form.changes:
        text = f"{asked.task}: {'; '.join(form.change_texts())}"
        model_admin.message_user(request, text, messages.SUCCESS)
    return HttpResponseRedirect(asked.url)


def _switch(
    request: HttpRequest, model_admin: JobActions, asked: Asked, control: TaskControl | None
) -> HttpResponse:
    using, back = model_admin.using, HttpResponseRedirect(asked.url)
    if "_resume" in request.POST and control is not None:
        if operations.resume_controls([control.pk], using=using):
            model_admin.message_user(request, gettext("The task was resumed."), messages.SUCCESS)
    elif "_pause" in request.POST:
        if not is_answered(request):
            return ask(
                model_admin,
                request,
                [asked.task],
                title=gettext("Pause task %s?") % asked.task,
                text=gettext(
                    "No worker starts jobs of this task, for any tenant, until you resume it. "
                    "Running jobs continue, and new jobs are accepted."
                ),
                yes=gettext("Pause the task"),
                sent=[("_pause", "1")],
            )
        try:
            with transaction.atomic(using=using):
                row = operations.make_control(using, asked.task)
                operations.pause_controls([row.pk], using=using)
        except InvalidOption as error:
            model_admin.message_user(request, str(error), messages.ERROR)
        else:
            model_admin.message_user(request, gettext("The task was paused."), messages.SUCCESS)
    return back


def _page(
    request: HttpRequest,
    model_admin: JobActions,
    asked: Asked,
    control: TaskControl | None,
    form: LimitsForm | None = None,
) -> HttpResponse:
    using = model_admin.using
    queues = None if asked.queues is None else asked.queues[:QUEUES_APART]
    figures = read_task_figures(using, asked.task, asked.hours, queues)
    failures = read_failures(using, asked.hours, queues=queues, task=figure_name(asked.task))
    sees_control = may(request, "view", TaskControl) or may(request, "change", TaskControl)
    may_control = _may_control(request, control)
    known = control if sees_control else None
    load = None
    if known is not None:
        found = operations.task_loads(using, [known.pk])
        load = found.get(known.pk, TaskLoad(known.pk, 0, 0))
    if may_control and form is None:
        form = LimitsForm(instance=control or TaskControl(task=asked.task))
    range_counts = figures.sums[asked.hours]
    tenant, linked = asked.tenant or "", sees_queues(request)
    shown = Filter(asked.hours, asked.task, "", tenant, "", queues, linked)
    # the list of failures has no filter for jobs without a tenant
    url = "" if asked.tenant == "" else failures_url(**shown.query)
    return model_admin.page(
        request,
        "admin/tenantqueue/task.html",
        gettext("Task %s") % asked.task,
        asked=asked,
        name=breakable(asked.task),
        tenant=_tenant(request, asked.tenant),
        all_url=task_url(asked.task, hours=asked.hours),
        ranges=[
            (task_url(asked.task, hours=hours, **asked.about), label, hours == asked.hours)
            for hours, label in RANGES.items()
        ],
        cut=QUEUES_APART if asked.queues and len(asked.queues) > QUEUES_APART else None,
        figures=get_settings().figures,
        tiles=_tiles(using, asked, figures, load, url),
        lines=_lines(figures),
        labels=list(RANGES.values()),
        waits=histogram(range_counts.waits, gettext("Waits by length")),
        runs=histogram(range_counts.runs, gettext("Run times by length")),
        failures=[shown_line(line, shown) for line in failures.lines],
        failures_url=url,
        jobs_url=jobs_url(**_job_filters(asked)),
        control=known,
        control_url=known and reverse("admin:tenantqueue_taskcontrol_change", args=[known.pk]),
        sees_control=sees_control,
        may_control=may_control,
        form=form,
        changes=[
            described(change)
            for change in (changes_of(using, known, most=NAMED) if known is not None else ())
        ]
        if may(request, "view", Change)
        else [],
    )


def _tenant(request: HttpRequest, tenant: str | None) -> SafeString | str | None:
    if tenant is None or not sees_queues(request):
        return tenant
    return tenant_link(tenant)


def _job_filters(asked: Asked, **more: str) -> dict[str, str]:
    """Return the filters of the list of jobs."""
    found = {"task": asked.task, **more}
    if asked.tenant == "":
        found["tenant_choice"] = NONE
    elif asked.tenant is not None:
        found["tenant"] = asked.tenant
    return found


def _tiles(
    using: str, asked: Asked, figures: TaskFigures, load: TaskLoad | None, failures: str
) -> list[Tile]:
    points, counts = figures.points, figures.sums[asked.hours]
    active = Job.objects.using(using).active().filter(task=asked.task).order_by()
    if asked.queues is not None:
        active = active.filter(queue_id__in=asked.queues)
    running = len(active.values_list("pk", flat=True)[:COUNTED_TO])
    tiles = [
        Tile(
            gettext("Running jobs"),
            counted(running, COUNTED_TO),
            url=jobs_url(**_job_filters(asked, state="active")),
        ),
        Tile(
            gettext("Jobs started per second"),
            rate_text(figures.started_per_second),
            str(LAST[asked.hours]),
            sparkline([p.started for p in points], gettext("Jobs started over time")),
        ),
        Tile(
            gettext("Wait, p95"),
            duration_text(percentile(counts.waits, 0.95)),
            "",
            sparkline(_p95([p.waits for p in points]), gettext("Wait (p95) over time")),
        ),
        Tile(
            gettext("Run time, p95"),
            duration_text(percentile(counts.runs, 0.95)),
            "",
            sparkline(_p95([p.runs for p in points]), gettext("Run time (p95) over time")),
        ),
        Tile(
            gettext("Failed runs"),
            _share(counts.failing),
            gettext("%(failed)s ended in error, %(retried)s were retried")
            % {"failed": f"{counts.failed:,}", "retried": f"{counts.retried:,}"},
            sparkline(
                [p.failures for p in points], gettext("Failed runs over time"), "tq-spark-error"
            ),
            alarming=bool(counts.failed),
            url=failures,
        ),
    ]
    if load is not None:
        tiles.append(
            Tile(
                gettext("Held by its limits"),
                counted(load.line, COUNTED_TO),
                gettext("of all tenants"),
                alarming=bool(load.line),
            )
        )
    return tiles


def _p95(points: list[list[int]]) -> list[float]:
    return [percentile(counts, 0.95) or 0.0 for counts in points]


def _share(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f} %"


def _lines(figures: TaskFigures) -> list[tuple[Any, list[str]]]:
    """Return the lines of the table of ranges: the title, and a value for each range."""

    def ran(counts: Counts) -> float | None:
        number = sum(counts.runs)
        return counts.run_seconds / number if number else None

    sums = [figures.sums[hours] for hours in PERIODS]
    shares = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    return [
        (_("Started"), [f"{c.started:,}" for c in sums]),
        (_("Ended"), [f"{c.ended:,}" for c in sums]),
        (_("Failed"), [_share(c.failing) for c in sums]),
        *(
            (_("Wait, %s") % name, [duration_text(percentile(c.waits, share)) for c in sums])
            for name, share in shares
        ),
        *(
            (_("Run time, %s") % name, [duration_text(percentile(c.runs, share)) for c in sums])
            for name, share in shares
        ),
        (_("Mean run time"), [duration_text(ran(c)) for c in sums]),
        (_("Total run time"), [duration_text(c.run_seconds) for c in sums]),
    ]
