"""Tasks that are paused, limited or slowed down on the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import TaskControl
from ..operations import task_control as operations
from ..operations.task_control import task_loads
from ..queries.tasks import TaskLoad
from .base import EmptyList
from .formats import badge, badges
from .links import task_link
from .live_admin import LinedAdmin


@admin.register(TaskControl)
class TaskControlAdmin(LinedAdmin[TaskControl]):
    """The kill switch of a task, and its limit and rate over all tenants."""

    export_name = "task-controls"
    empty_list = EmptyList(
        _("There are no task controls yet."),
        _(
            "Add one to pause a task on all workers, or to limit how many of its jobs run at once "
            "or start per second."
        ),
    )
    list_display = ("task", "trouble", "num_slots", "max_per_second", "running", "line", "paused")
    list_display_links = ("task",)
    list_editable = ("paused", "num_slots", "max_per_second")
    list_filter = ("paused",)
    search_fields = ("task",)
    search_help_text = _("A part of the name.")
    ordering = ("task",)
    fixed = ("task",)
    tunable = operations.TUNABLE
    operation = staticmethod(operations.tune_control)
    delete = staticmethod(operations.delete_controls)
    pause = staticmethod(operations.pause_controls)
    resume = staticmethod(operations.resume_controls)
    pause_text = _(
        "No worker starts jobs of these tasks, for any tenant, until you resume them. Running "
        "jobs continue, and new jobs are accepted."
    )
    readonly_fields = ("running", "line", "created_at")
    fieldsets = (
        (None, {"fields": ("task",)}),
        (
            _("Takes effect at the next claim"),
            {"fields": ("paused", "num_slots", "max_per_second", "burst")},
        ),
        (_("Now"), {"fields": ("running", "line", "created_at")}),
    )

    def load(self, rows: Sequence[TaskControl]) -> None:
        found = task_loads(self.using, [row.pk for row in rows]) if rows else {}
        for row in rows:
            row.load = found.get(row.pk, TaskLoad(row.pk, 0, 0))  # type: ignore[attr-defined]

    def _shown_instead(self, request: HttpRequest, obj: TaskControl | None) -> dict[Any, str]:
        shown = super()._shown_instead(request, obj)
        return shown if obj is None else {**shown, "task": "task_shown"}

    @admin.display(description=_("task"))
    def task_shown(self, control: TaskControl) -> SafeString | str:
        return task_link(control.task) if control.may_view_jobs else control.task  # type: ignore[attr-defined]

    def insert(self, row: TaskControl) -> None:
        """Write a new control, and let it take effect."""
        super().insert(row)
        values = {name: getattr(row, name) for name in operations.TUNABLE}
        operations.tune_control(row.pk, using=self.using, **values)

    def save_model(self, request: HttpRequest, obj: TaskControl, form: Any, change: bool) -> None:
        """Write a control; say so when nothing is known by the name of a new one."""
        if not change:
            self.warn_of_unknown(request, obj.task)  # its row makes the name known
        super().save_model(request, obj, form, change)

    @admin.display(description=_("problem"), empty_value="")
    def trouble(self, control: TaskControl) -> SafeString:
        load: TaskLoad = control.load  # type: ignore[attr-defined]
        labels = self.troubles(control)
        if control.max_per_second is not None and load.line:
            labels.append(badge("scheduled", gettext("rate used up")))
        return badges(labels)

    @admin.display(description=_("running"))
    def running(self, control: TaskControl) -> SafeString:
        return self.inside(control)
