"""What operators do with jobs: the actions of the list, and the buttons of a job's page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..exceptions import QueueRetired
from ..models import Job, TenantQueue
from ..operations import control, monitor_control
from .base import TenantQueueModelAdmin
from .bulk_actions import act_on_all
from .confirmation import ask, confirm, is_answered
from .job_forms import MoveForm, PriorityForm
from .visible import may_retry, visible_tenants

Act = Callable[["JobActions", HttpRequest, Sequence[Job]], HttpResponse | None]
"""What an action does with jobs; None: back to the page that it came from."""


def _action(bulk: str, act: Act, description: Any, permission: str = "change") -> Any:
    """Return an action of the list: on the ticked jobs, or as the job `bulk` on all that match.

    The filters of the list do not count for ticked jobs: one whose state has changed since the
    list was shown must be reported as too late.
    """

    @admin.action(permissions=[permission], description=description)
    def action(
        self: JobActions, request: HttpRequest, queryset: QuerySet[Job]
    ) -> HttpResponse | None:
        if request.POST.get("select_across") == "1":
            return act_on_all(self, request, bulk)
        return act(self, request, list(queryset.only("id", "task", "queue_id", "created_by")))

    return action


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
    # the page of a job has read it: these get a list of jobs, not a queryset
    buttons = {"_retry": "_retry", "_run_now": "_run_now", "_cancel": "_cancel"}

    def _retry(self, request: HttpRequest, jobs: Sequence[Job]) -> None:
        own = [job for job in jobs if may_retry(request, job.task, job.created_by)]
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

    def _cancel(self, request: HttpRequest, jobs: Sequence[Job]) -> HttpResponse | None:
        text = ngettext(
            "A waiting job ends now and never starts. A running job is asked to stop. A finished "
            "job is skipped.",
            "Waiting jobs end now and never start. Running jobs are asked to stop. Finished jobs "
            "are skipped.",
            len(jobs),
        )
        if page := confirm(self, request, jobs, gettext("Cancel"), text):
            return page
        cancelled, asked = control.cancel([job.pk for job in jobs], using=self.using)
        late = len(jobs) - len(cancelled) - len(asked)
        if cancelled or not asked:
            self._say(request, len(cancelled), gettext("cancelled"), late)
        if asked:
            late = 0 if cancelled else late
            self._say(request, len(asked), gettext("running and asked to stop"), late)
        return None

    def _run_now(self, request: HttpRequest, jobs: Sequence[Job]) -> None:
        ids = control.run_now([job.pk for job in jobs], using=self.using)
        self._say(request, len(ids), gettext("made due now"), len(jobs) - len(ids))

    def _change_priority(self, request: HttpRequest, jobs: Sequence[Job]) -> HttpResponse | None:
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

    def _move_chosen(self, request: HttpRequest, jobs: Sequence[Job]) -> HttpResponse | None:
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
                    "%d not moved: it no longer waits, or must stay in a queue of its tenant.",
                    "%d not moved: they no longer wait, or must stay in a queue of their tenant.",
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

    def _delete_finished(self, request: HttpRequest, jobs: Sequence[Job]) -> HttpResponse | None:
        text = gettext(
            "Finished jobs are deleted permanently, with their results and errors. Jobs that have "
            "not ended and jobs of monitors are left as they are."
        )
        if page := confirm(self, request, jobs, gettext("Delete"), text):
            return page
        ids = control.delete_finished([job.pk for job in jobs], using=self.using)
        self._say(request, len(ids), gettext("deleted"), len(jobs) - len(ids))
        return None

    retry_selected = _action("retry", _retry, _("Retry selected jobs"))
    cancel_selected = _action("cancel", _cancel, _("Cancel selected jobs…"))
    run_now_selected = _action("run_now", _run_now, _("Run selected jobs now"))
    change_priority_selected = _action(
        "change_priority", _change_priority, _("Change priority of selected jobs…")
    )
    move_selected = _action("move", _move_chosen, _("Move selected jobs to another queue…"))
    delete_finished_selected = _action(
        "delete", _delete_finished, _("Delete selected finished jobs…"), "delete_finished"
    )

    def has_delete_finished_permission(self, request: HttpRequest) -> bool:
        may_delete = request.user.has_perm("tenantqueue.delete_job")
        return may_delete and self.has_change_permission(request)

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
