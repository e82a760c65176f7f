"""Jobs: the list and its actions, and one job's page. Every change is an operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from ..models import Job
from ..operations import control
from ..states import State
from ..status.display_limits import LINE
from ..status.held import GATES as HELD_BY
from .acting import acting
from .export import Table
from .failures import failure_group_view, failures_view
from .formats import (
    NOTHING,
    badge,
    breakable,
    duration_text,
    moment,
    ongoing,
    progress_bar,
    state_badge,
)
from .job_changelist import JobChangeList, exported_columns, exported_jobs
from .job_forms import WaitingJobForm
from .job_page import is_tunable
from .job_values import shown_arguments
from .job_views import JobPages
from .links import job_url, tenant_link
from .task_page import task_view
from .visible import sees_queues

GATES: dict[str | None, Any] = {"details": _("its details"), **HELD_BY}
"""What holds a job, in the words of the other pages."""


def _error(job: Job) -> SafeString | str:
    """Return the class and the first line of the last error; nothing of a job that succeeded."""
    name, text = job.error_class, job.error_text  # type: ignore[attr-defined]
    if not name and not text:
        return ""
    first = next(iter((text or "").strip().splitlines()), "")
    if len(first) > LINE:
        first = f"{first[: LINE - 1]}…"
    return format_html(
        '<small class="tq-error" title="{}: {}"><b>{}</b> {}</small>',
        name or "",
        first,
        (name or "").rpartition(".")[2],
        first,
    )


@admin.register(Job)
class JobAdmin(JobPages):
    """Shows jobs. Rows are never saved: buttons and actions call the operations."""

    export_name = "jobs"
    change_list_template = "admin/tenantqueue/job/change_list.html"
    tenant_path = "queue__tenant"
    refreshes = True
    addable = False  # Task.delay() makes jobs
    list_display = (
        "title",
        "where",
        "state_label",
        "priority",
        "attempts",
        "created",
        "waited",
        "ran",
    )
    list_display_links = ("title",)
    list_per_page = 100
    sortable_by = ()
    search_fields = ("id",)
    search_help_text = _(
        "A job number (1753 or #1753), the full name of a task, an object (shop.order:17), or "
        "part of a task name, a label or an argument."
    )

    def get_urls(self) -> list[URLPattern]:
        views = {
            "failures/": ("tenantqueue_failures", failures_view),
            "failures/group/": ("tenantqueue_failure_group", failure_group_view),
            "task/": ("tenantqueue_task", task_view),
        }
        pages = [
            path(route, self.admin_site.admin_view(partial(view, model_admin=self)), name=name)
            for route, (name, view) in views.items()
        ]
        return [*pages, *super().get_urls()]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return JobChangeList

    def export_table(self, changelist: ChangeList) -> Table:
        found = cast("JobChangeList", changelist)
        jobs = exported_jobs(found.root_queryset, found.all_ids())
        return Table(self.export_name, exported_columns(), jobs)

    @admin.display(description=_("job"))
    def title(self, job: Job) -> SafeString:
        return format_html('<span class="tq-number">#{}</span> {}', job.pk, breakable(job.task))

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns; tenants are links for users who may open their pages."""
        where = "where" if sees_queues(request) else "where_unlinked"
        return [where if name == "where" else name for name in self.list_display]

    @admin.display(description=_("tenant / queue"))
    def where(self, job: Job) -> SafeString | str:
        return self._where(job, tenant_link)

    @admin.display(description=_("tenant / queue"))
    def where_unlinked(self, job: Job) -> SafeString | str:
        return self._where(job, lambda tenant: tenant or NOTHING)

    def _where(self, job: Job, shown: Callable[[str], SafeString | str]) -> SafeString | str:
        queue = job.shown_queue  # type: ignore[attr-defined]
        if queue is None:
            return gettext("queue %d, deleted") % job.queue_id
        tenant = shown(queue.tenant)
        return format_html('{}<br><a href="?queue_id={}">{}</a>', tenant, queue.pk, queue.name)

    @admin.display(description=_("state"))
    def state_label(self, job: Job) -> SafeString:
        label = state_badge(job.state)
        if job.state == State.HELD:
            label = badge(job.state, gettext("held: %s") % GATES.get(job.held_by, job.held_by))
        parts: list[SafeString | str] = [label]
        if job.progress_percent is not None and job.state != State.SUCCESS:
            parts.append(progress_bar(job.progress_percent))
        if error := _error(job):
            parts.append(error)
        return format_html_join(mark_safe("<br>"), "{}", ((part,) for part in parts))

    @admin.display(description=_("attempt"))
    def attempts(self, job: Job) -> str:
        return f"{job.attempt} / {job.max_attempts}"

    @admin.display(description=pgettext_lazy("time", "created"))
    def created(self, job: Job) -> SafeString | str:
        return moment(job.created_at)

    @admin.display(description=_("waited"))
    def waited(self, job: Job) -> SafeString | str:
        if job.wait_duration is not None:
            return duration_text(job.wait_duration)
        if job.final:
            return NOTHING
        ready_at = max(job.created_at, job.run_at)
        if job.state == State.SCHEDULED:
            return moment(ready_at)
        return ongoing(timezone.now() - ready_at, gettext("waits"))

    @admin.display(description=_("run time"))
    def ran(self, job: Job) -> SafeString | str:
        if job.state == State.RUNNING and job.started_at is not None:
            return ongoing(timezone.now() - job.started_at, gettext("runs"))
        return duration_text(job.run_duration)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        job = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, job):
            raise PermissionDenied
        if job is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined, no-any-return]
                request, self.opts, object_id
            )
        form = None
        if request.method == "POST":
            if not self.has_change_permission(request, job):
                raise PermissionDenied
            if "_tune" not in request.POST or not is_tunable(job):
                with acting(request):
                    return self._press(request, job)
            form = WaitingJobForm(job, self.queue_of(job), request.POST)
            if form.is_valid():
                with acting(request):
                    return self._tune(request, job, form)
        return self.page(
            request,
            "admin/tenantqueue/job/change_form.html",
            job.task,
            original=job,
            arguments=shown_arguments(job),
            arguments_url=job_url(job.pk, self.admin_site, "value", "arguments"),
            has_view_permission=True,
            preserved_filters=self.get_preserved_filters(request),
            **self.changing_context(request, job, form),
            **(extra_context or {}),
        )

    def _press(self, request: HttpRequest, job: Job) -> HttpResponse:
        pressed = next((name for name in self.buttons if name in request.POST), None)
        page: HttpResponse | None = None
        if pressed is None or (pressed == "_cancel" and job.final):
            self._say(request, 0, gettext("changed"), 1)
        else:
            page = getattr(self, self.buttons[pressed])(request, [job])
        return page or HttpResponseRedirect(request.get_full_path())

    def _tune(self, request: HttpRequest, job: Job, form: WaitingJobForm) -> HttpResponse:
        done = {
            "priority": lambda value: control.change_priority([job.pk], value, using=self.using),
            "run_at": lambda value: control.change_run_at([job.pk], value, using=self.using),
            "queue": lambda value: self._move([job], form.moves_from, value),
        }
        texts = form.change_texts()
        changed = [
            text
            for text, (name, (_old, value)) in zip(texts, form.changes.items(), strict=True)
            if done[name](value)
        ]
        if changed:
            self.message_user(request, "; ".join(changed), messages.SUCCESS)
        if len(changed) < len(texts):
            text = gettext("Too late: the job no longer waits. It was not changed.")
            self.message_user(request, text, messages.WARNING)
        return HttpResponseRedirect(request.get_full_path())
