"""Schedules."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DatabaseError, models, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ...admin.app_list import Use
from ...admin.base import EmptyList
from ...admin.filters import TENANT_FILTERS
from ...admin.formats import (
    NOTHING,
    badge,
    badges,
    duration_text,
    failure_text,
    json_text,
    moment,
    unbroken,
)
from ...admin.job_forms import MomentField
from ...admin.links import job_link, job_links
from ...admin.live_admin import TunedAdmin
from ...admin.tenant_input import tenant_text
from ...calls.sources import registered_tasks
from ...exceptions import InvalidOption, TenantQueueError
from ...status.display_limits import NAMED
from . import services
from .forms import CALL, ScheduleForm, masked_call
from .models import LATE, Schedule, ScheduleQuerySet
from .recurrence import EPOCH, Recurrence, read_zone


class ScheduleTroubleFilter(admin.SimpleListFilter):
    title = _("problem")
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("late", _("late")), ("failing", _("failing"))]

    def queryset(self, request: HttpRequest, queryset: ScheduleQuerySet) -> ScheduleQuerySet:  # type: ignore[override]
        match self.value():
            case "late":
                return queryset.late()
            case "failing":
                return queryset.failing()
        return queryset


def next_runs(recurrence: Recurrence) -> list[str]:
    """Return the next runs in the schedule's time zone. Raises InvalidOption."""
    recurrence.check()
    zone = read_zone(recurrence.time_zone)
    ticks = islice(recurrence.ticks(timezone.now()), NAMED)
    return [f"{tick.astimezone(zone):%a %Y-%m-%d %H:%M:%S %Z}" for tick in ticks]


@admin.register(Schedule)
class ScheduleAdmin(TunedAdmin[Schedule]):
    class Media:
        js = ("tenantqueue_schedules/schedule.js",)

    form = ScheduleForm
    change_form_template = "admin/tenantqueue_schedules/schedule/change_form.html"
    buttons = {"_run_now": "run_selected"}
    use = Use.AUTOMATION
    export_name = "schedules"
    not_exported = CALL  # arguments may be secret
    empty_list = EmptyList(
        _("There are no schedules."),
        _("Add a schedule here, or declare one in the code:"),
        '@task(schedule="0 3 * * *")',
    )
    formfield_overrides = {
        models.DateTimeField: {"form_class": MomentField, "widget": MomentField.widget}
    }
    list_display = ("title", "trouble", "when", "next_run", "last_run", "late", "enabled")
    list_display_links = ("title",)
    list_editable = ("enabled",)
    list_filter = (ScheduleTroubleFilter, "enabled", "kind", "source", *TENANT_FILTERS)
    search_fields = ("name", "task")
    search_help_text = _("A part of the name or of the task.")
    ordering = ("tenant", "name")
    actions = ("run_selected", "enable_selected", "disable_selected")
    tunable = services.TUNABLE
    add = staticmethod(services.add_schedule)
    masked = {"args": "args_shown", "kwargs": "kwargs_shown"}
    operation = staticmethod(services.tune_schedule)
    delete = staticmethod(services.delete_schedules)
    readonly_fields = ("preview", "last_run", "late", "last_failure", "source", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "enabled")}),
        (_("What to run"), {"fields": ("task", "args", "kwargs")}),
        (
            _("Tenant and queue"),
            {"fields": ("tenant", ("queue", "priority"))},
        ),
        (
            _("When"),
            {
                "fields": (
                    "kind",
                    "expression",
                    "time_zone",
                    "preview",
                    ("starts_at", "ends_at"),
                    ("catch_up", "overlap"),
                    "jitter_seconds",
                )
            },
        ),
        (_("Now"), {"fields": ("last_run", "late", "last_failure", "source", "created_at")}),
    )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.preview_view)
        return [
            path("preview/", view, name="tenantqueue_schedules_schedule_preview"),
            *super().get_urls(),
        ]

    def may_edit(self, request: HttpRequest, obj: Schedule | None) -> bool:
        """Return whether all columns can be edited: not those of schedules of the code."""
        is_ours = obj is None or obj.source == Schedule.Source.ADMIN
        return is_ours and super().may_edit(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Schedule | None = None) -> Any:
        """Return all columns but `enabled` for a schedule of the code."""
        fields = super().get_readonly_fields(request, obj)
        if self.may_edit(request, obj):
            return fields
        return (*fields, *(n for n in self.tunable if n not in ("enabled", *self.masked)))

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:
        """Write a schedule. Warn of an unknown task, and of a schedule without a next run."""
        super().save_model(request, obj, form, change)
        row = Schedule.objects.using(self.using).get(pk=obj.pk)
        if row.task not in registered_tasks() and ":" not in row.task:
            text = gettext("This site has no task named “%s”. Workers must have it.") % row.task
            self.message_user(request, text, messages.WARNING)
        if row.enabled and row.next_at is None:
            text = gettext("The schedule has no next run: its time has passed.")
            self.message_user(request, text, messages.WARNING)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete it. Schedules of the code are removed there."""
        is_of_code = obj is not None and obj.source == Schedule.Source.CODE
        return not is_of_code and super().has_delete_permission(request, obj)

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """Return the next runs of the times that a page shows, or an error."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        asked = request.GET
        recurrence = Recurrence(
            kind=asked.get("kind", ""),
            expression=asked.get("expression", ""),
            time_zone=asked.get("time_zone", ""),
            anchor=EPOCH,
            **{name: self._read_moment(asked.get(name)) for name in ("starts_at", "ends_at")},
        )
        try:
            return JsonResponse({"runs": next_runs(recurrence)})
        except InvalidOption as error:
            return JsonResponse({"error": str(error)})

    def _read_moment(self, text: str | None) -> Any:
        try:
            return MomentField(required=False).clean(text)
        except ValidationError:
            return None

    @admin.action(permissions=["change"], description=_("Run selected schedules now"))
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        try:
            with transaction.atomic(using=self.using):
                jobs = services.run_schedules(ids, using=self.using)
        except (TenantQueueError, DatabaseError, TypeError, ValueError) as error:
            text = gettext("Nothing was enqueued: %s") % error
            self.message_user(request, text, messages.ERROR)
            return
        text = ngettext("%d job was enqueued:", "%d jobs were enqueued:", len(jobs)) % len(jobs)
        links = job_links(self.admin_site, request, jobs[:NAMED])
        if jobs:
            self.message_user(request, format_html("{} {}", text, links), messages.SUCCESS)
        if len(ids) > len(jobs):
            text = gettext("Schedules for every tenant run within a second, if they are enabled.")
            self.message_user(request, text, messages.SUCCESS)

    @admin.action(permissions=["change"], description=_("Enable selected schedules"))
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        self.switch(request, queryset, "enabled", True, services.enable_schedules)

    @admin.action(permissions=["change"], description=_("Disable selected schedules"))
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        self.switch(request, queryset, "enabled", False, services.disable_schedules)

    @admin.display(description=_("schedule"), ordering="name")
    def title(self, row: Schedule) -> SafeString:
        whose = tenant_text(row.tenant)
        if row.name == row.task:
            return format_html("{}<br><small>{}</small>", row.name, whose)
        return format_html("{}<br><small>{} · {}</small>", row.name, whose, row.task)

    @admin.display(description=_("problem"), empty_value="")
    def trouble(self, row: Schedule) -> SafeString:
        labels = []
        if row.source == Schedule.Source.REMOVED:
            labels.append(badge("held", gettext("no longer declared")))
        if row.enabled and row.due_at and row.due_at < timezone.now() - LATE:
            labels.append(badge("error", gettext("late")))
        if row.enabled and row.failures:
            labels.append(badge("error", gettext("failing")))
        if not row.last_error:
            return badges(labels)
        text = failure_text(row.last_error, row.last_error_at)
        return format_html('{}<div class="tq-message">{}</div>', badges(labels), text)

    @admin.display(description=_("when"))
    def when(self, row: Schedule) -> SafeString:
        text = gettext("every %s") % row.expression if row.kind == "interval" else row.expression
        zone = row.time_zone if row.kind != "interval" else ""
        return format_html('<code class="tq-time">{}</code><br><small>{}</small>', text, zone)

    @admin.display(description=_("next run"), ordering="next_at")
    def next_run(self, row: Schedule) -> SafeString | str:
        return moment(row.next_at) if row.enabled else NOTHING

    @admin.display(description=_("last run"), ordering="-last_at")
    def last_run(self, row: Schedule) -> SafeString | str:
        if row.last_at is None or row.last_job_id is None:
            return moment(row.last_at)
        return format_html("{} <small>{}</small>", moment(row.last_at), job_link(row.last_job_id))

    @admin.display(description=_("lateness"), ordering="-lateness_seconds")
    def late(self, row: Schedule) -> SafeString | str:
        if row.lateness_seconds is None:
            return NOTHING
        return unbroken(duration_text(row.lateness_seconds))

    @admin.display(description=_("error"))
    def last_failure(self, row: Schedule) -> SafeString | str:
        if not row.last_error:
            return NOTHING
        count = ngettext("%d failure", "%d failures in a row", row.failures) % row.failures
        return format_html("<pre>{}</pre>{}, {}", row.last_error, count, moment(row.last_error_at))

    @admin.display(description=_("next runs"))
    def preview(self, row: Schedule) -> SafeString:
        try:
            runs = next_runs(row.recurrence) if row.expression else []
        except InvalidOption as error:
            runs = [str(error)]
        items = format_html_join("", "<li>{}</li>", ((run,) for run in runs))
        empty = gettext("None.")
        return format_html('<ul id="tq-runs" data-none="{}">{}</ul>', empty, items)

    @admin.display(description=_("positional arguments"))
    def args_shown(self, row: Schedule) -> SafeString:
        return _json_of(row, "args")

    @admin.display(description=_("keyword arguments"))
    def kwargs_shown(self, row: Schedule) -> SafeString:
        return _json_of(row, "kwargs")


def _json_of(row: Schedule, name: str) -> SafeString:
    return format_html("<pre>{}</pre>", json_text(masked_call(row)[name]))
