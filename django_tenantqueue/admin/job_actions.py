"""What operators do with jobs: the actions of the list, and the buttons of a job's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..exceptions import QueueRetired
from ..models import Job, TenantQueue
from ..operations import control, monitor_control
from .base import TenantQueueModelAdmin
from .bulk_actions import act_on_all, is_for_all
from .confirmation import ask, confirm, is_answered
from .formats import read_number
from .job_forms import MoveForm, PriorityForm
from .visible import may_retry, visible_tenants


class JobActions(TenantQueueModelAdmin[Job]):
    """Changes jobs by the operations, and says how many it came too late for."""

    actions = (
        "retry_selected",
        "cancel_selected",
        "run_now_selected",
        "change_priority_selected",
        "move_selected",
        "delete_finished_selected",
    )

    @admin.action(permissions=["change"], description=_("Retry selected jobs"))
    def retry_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Make failed and cancelled jobs ready again."""
        if is_for_all(request):
            return act_on_all(self, request, "retry")
        self._retry(request, self._chosen(request))
        return None

    @admin.action(permissions=["change"], description=_("Cancel selected jobs…"))
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Ask, then cancel jobs."""
        if is_for_all(request):
            return act_on_all(self, request, "cancel")
        return self._cancel(request, self._chosen(request))

    @admin.action(permissions=["change"], description=_("Run selected jobs now"))
    def run_now_selected(
        self, request: HttpRequest, queryset: QuerySet[Job]
    ) -> HttpResponse | None:
        """Make scheduled jobs ready."""
        if is_for_all(request):
            return act_on_all(self, request, "run_now")
        self._run_now(request, self._chosen(request))
        return None

    @admin.action(permissions=["change"], description=_("Change priority of selected jobs…"))
    def change_priority_selected(
        self, request: HttpRequest, queryset: QuerySet[Job]
    ) -> HttpResponse | None:
        """Ask for a priority and give it to the jobs that wait."""
        if is_for_all(request):
            return act_on_all(self, request, "change_priority")
        jobs = self._chosen(request)
        form = PriorityForm(request.POST if is_answered(request) else None)
        if form.is_valid():
            priority = form.cleaned_data["priority"]
            ids = control.change_priority([job.pk for job in jobs], priority, using=self.using)
            text = gettext("priority → %d") % priority
            self._say(request, len(ids), text, len(jobs) - len(ids))
            return None
        text = ngettext(
            "Give this job a new priority, if it still waits:",
            "Give these %(count)d jobs a new priority, those that still wait:",
            len(jobs),
        )
        return self._ask_values(request, jobs, form, gettext("Change priority"), text)

    @admin.action(permissions=["change"], description=_("Move selected jobs to another queue…"))
    def move_selected(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        """Ask for a queue and move the jobs that wait there."""
        if is_for_all(request):
            return act_on_all(self, request, "move")
        jobs = self._chosen(request)
        tenants = {
            queue.pk: queue.tenant
            for queue in TenantQueue.objects.using(self.using).filter(
                pk__in={job.queue_id for job in jobs}
            )
        }
        data = request.POST if is_answered(request) else None
        form = MoveForm(self.using, tenants.values(), data, visible=visible_tenants(request))
        if form.is_valid():
            moved = 0
            for tenant, queue in form.targets.items():
                of_tenant = [job for job in jobs if tenants.get(job.queue_id) == tenant]
                ids = self._move(of_tenant, queue, queue.name)
                moved += len(ids)
            self._say(request, moved, gettext("moved"), 0)
            if moved < len(jobs):
                left = len(jobs) - moved
                text = ngettext(
                    "%d left as it is: it does not wait any more, or stays with its tenant.",
                    "%d left as they are: they do not wait any more, or stay with their tenant.",
                    left,
                )
                self.message_user(request, text % left, messages.WARNING)
            return None
        text = ngettext(
            "Move this job to another queue, if it still waits:",
            "Move these %(count)d jobs to another queue, those that still wait:",
            len(jobs),
        )
        return self._ask_values(request, jobs, form, gettext("Move to another queue"), text)

    @admin.action(permissions=["delete_finished"], description=_("Delete selected finished jobs…"))
    def delete_finished_selected(
        self, request: HttpRequest, queryset: QuerySet[Job]
    ) -> HttpResponse | None:
        """Ask, then delete finished jobs."""
        if is_for_all(request):
            return act_on_all(self, request, "delete")
        jobs = self._chosen(request)
        text = gettext(
            "Finished jobs are deleted permanently, with their results and errors. Jobs that have "
            "not ended and jobs of monitors are left as they are."
        )
        if page := confirm(self, request, jobs, gettext("Delete"), text):
            return page
        ids = control.delete_finished([job.pk for job in jobs], using=self.using)
        self._say(request, len(ids), gettext("deleted"), len(jobs) - len(ids))
        return None

    def has_delete_finished_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may delete finished jobs."""
        may_delete = request.user.has_perm("tenantqueue.delete_job")
        return may_delete and self.has_change_permission(request)

    def _chosen(self, request: HttpRequest) -> list[Job]:
        """Return the ticked jobs that this user may see, wherever they have moved by now.

        The filters of the list do not count: a job whose state has changed since the list was
        shown must be reported as too late.
        """
        ticked = request.POST.getlist(ACTION_CHECKBOX_NAME)
        ids = [number for value in ticked if (number := read_number(value)) is not None]
        return list(self.get_queryset(request).filter(pk__in=ids).only("id", "name", "queue_id"))

    def _ask_values(
        self, request: HttpRequest, jobs: Sequence[Job], form: Form, title: str, text: str
    ) -> HttpResponse:
        """Return the page that asks for values. `text` says %(count)d for the number of jobs."""
        text %= {"count": len(jobs)}
        return ask(self, request, jobs, form=form, title=title, yes=title, text=text)

    def _move(self, jobs: Sequence[Job], queue: TenantQueue | None, name: str) -> list[int]:
        """Move jobs to the queue of that name of the same tenant as `queue`."""
        assert queue is not None, "the form has no such field then"
        ids = [job.pk for job in jobs]
        try:
            return control.change_queue(ids, tenant=queue.tenant, queue=name, using=self.using)
        except QueueRetired:
            return []  # since the form has looked

    def _retry(self, request: HttpRequest, jobs: Sequence[Job]) -> None:
        own = [job for job in jobs if may_retry(request, job.name, job.created_by)]
        if len(own) < len(jobs):
            text = gettext("Bulk actions of other users are not changed.")
            self.message_user(request, text, messages.WARNING)
        if not (jobs := own):
            return
        ids = control.retry([job.pk for job in jobs], using=self.using)
        left = [job.pk for job in jobs if job.pk not in set(ids)]
        empty = set(control.find_without_arguments(left, using=self.using))
        left = [pk for pk in left if pk not in empty]
        stopped = len(monitor_control.find_cancelled(left, using=self.using))
        self._say(request, len(ids), gettext("made ready again"), len(left) - stopped)
        if empty:
            text = ngettext(
                "%d job cannot be retried: its arguments were removed by a retention rule.",
                "%d jobs cannot be retried: their arguments were removed by a retention rule.",
                len(empty),
            )
            self.message_user(request, text % len(empty), messages.ERROR)
        if stopped:
            text = ngettext(
                "%d job was left as it is: its monitor was cancelled. Start another monitor.",
                "%d jobs were left as they are: their monitors were cancelled. Start others.",
                stopped,
            )
            self.message_user(request, text % stopped, messages.WARNING)

    def _run_now(self, request: HttpRequest, jobs: Sequence[Job]) -> None:
        ids = control.run_now([job.pk for job in jobs], using=self.using)
        self._say(request, len(ids), gettext("made due now"), len(jobs) - len(ids))

    def _cancel(
        self, request: HttpRequest, jobs: Sequence[Job], sent: Mapping[str, str] | None = None
    ) -> HttpResponse | None:
        """Return the page that asks; None once the jobs are cancelled."""
        text = ngettext(
            "A job that waits ends now and never starts. A running job is asked to stop. A job "
            "that has ended is left as it is.",
            "Jobs that wait end now and never start. Running jobs are asked to stop. Jobs that "
            "have ended are left as they are.",
            len(jobs),
        )
        if page := confirm(self, request, jobs, gettext("Cancel"), text, sent):
            return page
        cancelled, asked = control.cancel([job.pk for job in jobs], using=self.using)
        late = len(jobs) - len(cancelled) - len(asked)
        if cancelled or not asked:
            self._say(request, len(cancelled), gettext("cancelled"), late)
        if asked:
            late = 0 if cancelled else late
            self._say(request, len(asked), gettext("running and asked to stop"), late)
        return None

    def _say(self, request: HttpRequest, done: int, what: str, late: int) -> None:
        text = ngettext("%(done)d job: %(what)s.", "%(done)d jobs: %(what)s.", done) % {
            "done": done,
            "what": what,
        }
        if late:
            text += " " + ngettext(
                "%d was left as it is: its state does not allow it (any more).",
                "%d were left as they are: their state does not allow it (any more).",
                late,
            ) % (late,)
        self.message_user(request, text, messages.SUCCESS if done else messages.WARNING)
