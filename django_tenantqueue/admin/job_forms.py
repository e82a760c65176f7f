"""What operators enter about jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..calls.options import check_moment
from ..exceptions import InvalidOption
from ..models import Job, TenantQueue
from ..states import Priority, State
from .formats import NOTHING
from .live_forms import ComparingForm, hidden_tenant


class _MomentInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M:%S", attrs={"step": "1"})


class MomentField(forms.DateTimeField):
    """A moment to the second, in the current time zone."""

    widget = _MomentInput


class RunAtField(MomentField):
    """A time that a job can have."""

    def clean(self, value: Any) -> datetime | None:
        run_at: datetime | None = super().clean(value)
        if run_at is not None:
            try:
                check_moment("run_at", run_at)
            except InvalidOption as error:
                raise ValidationError(str(error)) from error
        return run_at


class PriorityForm(forms.Form):
    """A new priority for the chosen jobs."""

    priority = forms.IntegerField(
        label=_("Priority"),
        min_value=Priority.LOWEST_NUMBER,
        max_value=Priority.HIGHEST_NUMBER,
        help_text=_("A lower number runs first. Users' work is 240, administrators' 220."),
    )


class _QueueForm(forms.Form):
    """An existing queue: a typo creates none."""

    tenant = forms.CharField(
        label=_("Tenant"),
        max_length=200,
        required=False,
        strip=False,
        help_text=_(
            "Empty: each job keeps its tenant. Jobs with a session, user limit, monitor or key "
            "always keep it."
        ),
    )
    queue = forms.CharField(label=_("Queue"), max_length=100, strip=False)

    def __init__(
        self, using: str, data: Any = None, *, visible: Collection[str] | None = None
    ) -> None:
        """`visible`: the tenants that the user sees; None: all."""
        super().__init__(data)
        self._using = using
        self._visible = visible

    def clean_tenant(self) -> str:
        tenant = str(self.cleaned_data["tenant"])
        if tenant and self._visible is not None and tenant not in self._visible:
            raise hidden_tenant(tenant)
        return tenant


class MoveForm(_QueueForm):
    """Another queue for the chosen jobs.

    `targets` maps each tenant of the jobs to the queue that its jobs go to.
    """

    def __init__(self, using: str, tenants: Iterable[str], *args: Any, **kwargs: Any) -> None:
        super().__init__(using, *args, **kwargs)
        self.targets: dict[str, TenantQueue] = {}
        self._tenants = sorted(set(tenants))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "queue" in cleaned and "tenant" in cleaned:
            for tenant in self._tenants:
                wanted = cleaned.get("tenant") or tenant
                try:
                    self.targets[tenant] = open_queue(self._using, wanted, cleaned["queue"])
                except ValidationError as error:
                    self.add_error("queue", error)
                    break
        return cleaned


class MoveAllForm(_QueueForm):
    """Another queue for all jobs that match. Which tenants they have is not known before."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        name, tenant = cleaned.get("queue"), cleaned.get("tenant")
        if "tenant" not in cleaned:
            return cleaned
        try:
            if name and tenant:
                open_queue(self._using, tenant, name)
            elif name and not self._is_known(name):
                text = gettext("No tenant has a queue “%s” that takes new jobs: add it first.")
                raise ValidationError(text % name, code="unknown")
        except ValidationError as error:
            self.add_error("queue", error)
        return cleaned

    def _is_known(self, name: str) -> bool:
        queues = TenantQueue.objects.using(self._using).filter(name=name, retired=False)
        if self._visible is not None:
            queues = queues.filter(tenant__in=sorted(self._visible))
        return queues.exists()


def open_queue(using: str, tenant: str, name: str) -> TenantQueue:
    """Return the queue of that name; raise ValidationError: there is none, or it is retired."""
    queue = TenantQueue.objects.using(using).filter(tenant=tenant, name=name).first()
    if queue is None:
        raise ValidationError(
            gettext("Tenant “%(tenant)s” has no queue “%(name)s”: add it first.")
            % {"tenant": tenant or NOTHING, "name": name},
            code="unknown",
        )
    if queue.retired:
        raise ValidationError(
            gettext("Queue “%s” is retired and takes no new jobs.") % queue, code="retired"
        )
    return queue


class WaitingJobForm(ComparingForm, PriorityForm):
    """Priority, time and queue of a job that waits. It posts what it showed, as for queues."""

    conflict = _(
        "You changed this from %(shown)s to %(wanted)s, but meanwhile it became %(now)s. "
        "Save again to make it %(wanted)s."
    )
    run_at = RunAtField(
        label=_("Run at"),
        required=False,
        help_text=_("Starts at this time at the earliest. A time in the past makes the job ready."),
    )

    queue = forms.CharField(
        label=_("Queue"),
        max_length=100,
        strip=False,
        help_text=_("Choose another queue of its tenant to move the job."),
    )

    def __init__(self, job: Job, queue: TenantQueue | None, data: Any = None) -> None:
        super().__init__(
            data,
            initial={
                "priority": job.priority,
                "run_at": job.run_at.replace(microsecond=0),
                "queue": queue.name if queue else "",
            },
        )
        if queue is None:  # deleted by hand
            del self.fields["queue"]
        self.moves_from = queue
        self.job = job
        self.changes = {}
        if job.state == State.HELD:
            del self.fields["run_at"]  # its session or monitor decides when it may run
        for field in self.fields.values():
            field.show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        """Note the changes; reject those of values that another operator has changed since."""
        cleaned = super().clean() or {}
        given = [name for name in self.fields if cleaned.get(name) is not None]
        self.compare_with({name: self.initial[name] for name in given})
        return cleaned

    def clean_queue(self) -> str:
        """Refuse a queue that there is not, or that takes no jobs."""
        name = str(self.cleaned_data["queue"])
        if self.moves_from is not None and name != self.moves_from.name:
            open_queue(self.moves_from._state.db or "default", self.moves_from.tenant, name)
        return name
