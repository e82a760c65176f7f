"""Failed runs by task and exception class, and the actions on all jobs of one group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import localize
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from ..conf import get_settings
from ..models import TenantQueue
from ..operations.failures import MOST, Done, cancel_failed, retry_failed
from ..status.display_limits import COUNTED_TO, LINE, LISTED, PAGE, starts_of_periods
from ..status.failures import (
    WALKED,
    Example,
    FailureLine,
    FailurePage,
    FoundJobs,
    Group,
    HitQueues,
    describe,
    figure_name,
    find,
    read_failures,
    walk_failed,
    walk_waiting,
)
from ..status.job_pages import QUEUES_APART, WINDOW, queue_ids
from ..text import clean_text
from .acting import acting
from .charts import sparkline
from .confirmation import confirm, is_answered
from .formats import NOTHING, breakable, counted, moment, state_badge
from .home import RANGES, failures_url, read_hours
from .links import job_url, place_link, task_link
from .visible import may_retry, sees_queues, visible_tenants

if TYPE_CHECKING:
    from .job_actions import JobActions


@dataclass(frozen=True, slots=True)
class Filter:
    """What the address asks for; an empty text is no filter. `queues`: None is any.

    `linked`: whether the names of queues are links.
    """

    hours: int
    task: str
    error: str
    tenant: str
    queue: str
    queues: tuple[int, ...] | None
    linked: bool

    @property
    def query(self) -> dict[str, str]:
        """Return it as the parameters of an address."""
        named = {"task": self.task, "tenant": self.tenant, "queue": self.queue}
        return {"hours": str(self.hours), **{name: text for name, text in named.items() if text}}

    def group_url(self, name: str, error: str) -> str:
        """Return the address of a group's page, with the same range and queues."""
        query = {**self.query, "task": name, "error": error}
        return f"{reverse('admin:tenantqueue_failure_group')}?{urlencode(query)}"


def _read(request: HttpRequest) -> Filter:
    texts = {name: request.GET.get(name, "") for name in ("task", "error", "tenant", "queue")}
    queues, tenants = None, visible_tenants(request)
    if texts["tenant"] or texts["queue"] or tenants is not None:
        tenant, queue = (clean_text(texts[n]) or None for n in ("tenant", "queue"))
        queues = queue_ids(get_settings().database, tenant=tenant, name=queue, tenants=tenants)
    return Filter(read_hours(request), **texts, queues=queues, linked=sees_queues(request))


def failures_view(request: HttpRequest, model_admin: JobActions) -> HttpResponse:
    """Return the list of groups."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    asked = _read(request)
    page = read_failures(
        get_settings().database,
        asked.hours,
        queues=asked.queues,
        task=figure_name(asked.task.strip()) if asked.task.strip() else None,
    )
    return model_admin.page(
        request,
        "admin/tenantqueue/failures.html",
        gettext("Failures"),
        **_shared(request, model_admin, asked, page),
        lines=[shown_line(line, asked) for line in page.lines],
        listed=PAGE if len(page.lines) == PAGE else None,
    )


def failure_group_view(request: HttpRequest, model_admin: JobActions) -> HttpResponse:
    """Return the page of a group, or do what one of its buttons asks for."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    asked = _read(request)
    if not asked.task or not asked.error:
        return HttpResponseRedirect(failures_url(**asked.query))
    chosen = None if asked.queues is None else frozenset(asked.queues)
    name, error = figure_name(asked.task), figure_name(asked.error)
    group = Group(name, error, starts_of_periods(asked.hours, timezone.now())[0], chosen)
    if request.method == "POST":
        if not model_admin.has_change_permission(request):
            raise PermissionDenied
        return _act(request, model_admin, group, asked)
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET", "POST"])
    return _show(request, model_admin, group, asked)


def _show(
    request: HttpRequest, model_admin: JobActions, group: Group, asked: Filter
) -> HttpResponse:
    using = get_settings().database
    page = read_failures(
        using,
        asked.hours,
        queues=asked.queues,
        task=group.task,
        error=group.error,
        queues_listed=LISTED,
    )
    failed = find(walk_failed, using, group, most=COUNTED_TO, walked=WINDOW)
    waiting = find(walk_waiting, using, group, most=COUNTED_TO, walked=WINDOW)
    shown = failed.ids[:PAGE]
    found = describe(using, shown)
    queues = TenantQueue.objects.using(using).in_bulk({job.queue_id for job in found.values()})
    return model_admin.page(
        request,
        "admin/tenantqueue/failure_group.html",
        gettext("Failures of %(task)s") % {"task": group.task},
        **_shared(request, model_admin, asked, page),
        group={"task": task_link(group.task), "error": breakable(group.error)},
        line=shown_line(page.lines[0], asked) if page.lines else None,
        jobs=[
            {
                **_job(found[i], found[i].error == group.error),
                "queue": _place(
                    queues.get(found[i].queue_id, found[i].queue_id), linked=asked.linked
                ),
            }
            for i in shown
            if i in found
        ],
        shown=PAGE if len(failed.ids) > PAGE else None,
        failed=_number(failed),
        waiting=_number(waiting),
        list_url=failures_url(**{n: v for n, v in asked.query.items() if n != "task"}),
    )


def _shared(
    request: HttpRequest, model_admin: JobActions, asked: Filter, page: FailurePage
) -> dict[str, Any]:
    kept: dict[str, str | int] = {**asked.query}
    if asked.error:
        kept["error"] = asked.error
    queues = 0 if asked.queues is None else len(asked.queues)
    return {
        "asked": asked,
        "ranges": [
            (f"?{urlencode({**kept, 'hours': hours})}", label, hours == asked.hours)
            for hours, label in RANGES.items()
        ],
        "read_from": page.read_from,
        "cut": QUEUES_APART if queues > QUEUES_APART else None,
        "may_change": model_admin.has_change_permission(request),
        "figures": get_settings().figures,
        "failures_url": reverse("admin:tenantqueue_failures"),
    }


def shown_line(line: FailureLine, asked: Filter) -> dict[str, Any]:
    """Return what a table shows of a group."""
    return {
        "task": task_link(line.task),
        "error": breakable(line.error),
        "url": asked.group_url(line.task, line.error),
        "failed": line.failed,
        "retried": line.retried,
        "spark": sparkline(line.points, gettext("Failed runs over time"), "tq-spark-error"),
        "first": moment(line.first_at),
        "last": moment(line.last_at),
        "queues": _queues(line.hit, linked=asked.linked),
        "example": _example(line),
    }


def _place(queue: TenantQueue | int, *, linked: bool) -> SafeString | str:
    if isinstance(queue, int):
        return gettext("queue %d, deleted") % queue
    return place_link(queue) if linked else str(queue)


def _queues(hit: HitQueues, *, linked: bool) -> SafeString | str:
    names = [_place(queue, linked=linked) for queue in hit.queues]
    if hit.more:
        told = gettext("and at least %s more") if hit.capped else gettext("and %s more")
        names.append(told % localize(hit.more))
    return format_html_join(mark_safe("<br>"), "{}", ((name,) for name in names)) or NOTHING


def _example(line: FailureLine) -> SafeString | str:
    if line.example is None:
        return NOTHING
    job = _job(line.example, line.example.error == line.error)
    return format_html(
        '<a href="{}">#{}</a> {}<br>{}', job["url"], job["id"], job["state"], job["message"]
    )


def _job(job: Example, is_known: bool) -> dict[str, Any]:
    """Return a line about a job; its message is left out when it is of another failure."""
    lines = job.message.strip().splitlines() if is_known else []
    first = lines[0] if lines else ""
    short = first if len(first) <= LINE else f"{first[: LINE - 1]}…"
    return {
        "id": job.id,
        "url": job_url(job.id),
        "state": state_badge(job.state),
        "ended": moment(job.finished_at),
        "attempt": job.attempt,
        "message": format_html('<span title="{}">{}</span>', job.message, short),
    }


def _number(found: FoundJobs) -> str:
    if found.more:
        return counted(len(found.ids), len(found.ids))
    return str(localize(len(found.ids)))


def _act(
    request: HttpRequest, model_admin: JobActions, group: Group, asked: Filter
) -> HttpResponse:
    back = HttpResponseRedirect(request.get_full_path())
    using = get_settings().database
    button = next((name for name in ("_retry", "_cancel") if name in request.POST), None)
    if button is None:
        return back
    is_retry = button == "_retry"
    if is_retry and not may_retry(request, group.task, created_by=None):
        text = gettext("Bulk actions are retried on their own pages.")
        model_admin.message_user(request, text, messages.WARNING)
        return back
    walk = walk_failed if is_retry else walk_waiting
    found = find(walk, using, group, most=MOST, walked=WALKED)
    if found.ids or not is_answered(request):
        rows = [f"{group.task} #{job_id}" for job_id in found.ids]
        verb = gettext("Retry") if is_retry else gettext("Cancel")
        text = _question(group, asked, found, is_retry=is_retry)
        if page := confirm(model_admin, request, rows, verb, text):
            return page
    done = Done((), more=False)
    chosen: dict[str, Any] = {"queues": group.queues, "limit": MOST, "using": using}
    if is_answered(request):
        with acting(request):
            if is_retry:
                done = retry_failed(group.task, group.error, group.since, **chosen)
            else:
                done = cancel_failed(group.task, group.error, **chosen)
    what = gettext("made ready again") if is_retry else gettext("cancelled")
    model_admin._say(request, len(done.ids), what, 0)
    if done.more:
        text = gettext("The group has more jobs. Repeat the action for them.")
        model_admin.message_user(request, text, messages.WARNING)
    return back


def _question(group: Group, asked: Filter, found: FoundJobs, *, is_retry: bool) -> str:
    what = {"error": group.error, "range": str(RANGES[asked.hours])}
    if is_retry:
        text = gettext(
            "These jobs ended in error with %(error)s (range: %(range)s). They become ready again "
            "with fresh attempts and keep their errors. Jobs of cancelled monitors are left as "
            "they are."
        )
    else:
        text = gettext(
            "These jobs wait for another attempt after %(error)s. They end now and do not start "
            "again. A job that starts in the meantime is skipped."
        )
    told = text % what
    if where := " / ".join(filter(None, (asked.tenant, asked.queue))):
        told += " " + gettext("Jobs of other queues than %s are left as they are.") % where
    if found.more and len(found.ids) == MOST:
        told += " " + gettext(
            "These are the newest %s jobs of the group. Repeat the action for the others."
        ) % localize(MOST)
    elif found.more:
        told += " " + gettext("Only the newest %s jobs of the group were searched.") % localize(
            WALKED
        )
    return told
