"""Tenant queues: the list in which slots, weight and pause are edited, and one queue's page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db import transaction
from django.db.models import Field, QuerySet
from django.http import HttpRequest
from django.urls import path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..conf import get_settings
from ..models import TenantQueue
from ..operations import control
from ..status.display_limits import COUNTED_TO
from ..status.figures import duration_text
from ..status.held import held_text, is_late
from ..status.queue_troubles import QueueNow, Trouble, read_now
from ..status.thresholds import LATE_SECONDS
from .base import EmptyList
from .charts import gauge
from .filters import QueueNameFilter
from .formats import NOTHING, badge, badges, counted
from .home import overview_view
from .links import jobs_url
from .live_admin import TunedAdmin
from .queue_list import QueueChangeList, TroubleFilter
from .tenant_page import tenant_view

BADGES = {
    Trouble.LATE: "error",
    Trouble.FULL: "scheduled",
    Trouble.FAILING: "error",
    Trouble.NO_WORKER: "error",
    Trouble.HELD: "held",
}
"""The state of a job whose colours a trouble has."""


def jobs_link(queue: TenantQueue, state: str, text: str) -> SafeString:
    """Return a link to a queue's jobs in a state."""
    return format_html('<a href="{}">{}</a>', jobs_url(queue_id=queue.pk, state=state), text)


def _now(queue: TenantQueue) -> QueueNow:
    now: QueueNow = queue.now  # type: ignore[attr-defined]
    return now


@admin.register(TenantQueue)
class TenantQueueAdmin(TunedAdmin[TenantQueue]):
    """Tunes tenant queues live: every change is read by the next claim, on every machine."""

    export_name = "tenant-queues"
    empty_list = EmptyList(
        _("There are no tenant queues yet."),
        _(
            "A queue appears here when the first job of a tenant is enqueued. To set its slots "
            "before that, add the queue yourself. A task enqueues with"
        ),
        ".delay()",
    )
    tunable = control.TUNABLE
    operation = staticmethod(control.tune_queue)
    pause = staticmethod(control.pause)
    resume = staticmethod(control.resume)
    tells_pause = True
    pause_text = _(
        "No jobs of these queues start until you resume them. Running jobs continue, and new jobs "
        "are accepted."
    )
    fixed = ("tenant", "name")
    list_display = (
        "title",
        "running",
        "waiting",
        "held",
        "failing",
        "num_slots",
        "weight",
        "max_per_second",
        "paused",
    )
    list_display_links = ("title",)
    # all of 100 rows post 900 fields: Django takes 1,000
    list_editable = ("num_slots", "weight", "max_per_second", "paused")
    list_filter = (TroubleFilter, "retired", QueueNameFilter)
    search_fields = ("tenant", "name")
    search_help_text = _("A part of the tenant's or the queue's name.")
    ordering = ("tenant", "name")
    actions = (*TunedAdmin.actions, "retire_selected", "unretire_selected")
    buttons = {"_pause": "pause_selected", "_resume": "resume_selected"}  # of a tenant's page
    readonly_fields = ("created_at", "trouble", "running", "waiting", "failing", "held_by")
    fieldsets = (
        (None, {"fields": (("tenant", "name"),)}),
        (
            _("Now"),
            {"fields": ("trouble", ("running", "waiting", "failing"), "held_by", "created_at")},
        ),
        (
            _("Takes effect at the next claim"),
            {"fields": ("num_slots", "weight", ("max_per_second", "burst"), "paused")},
        ),
        (_("New jobs"), {"fields": ("max_waiting", "retired")}),
    )

    def get_urls(self) -> list[Any]:
        overview = self.admin_site.admin_view(partial(overview_view, model_admin=self))
        # an erasure is many transactions, also where a request is one
        of_tenant = transaction.non_atomic_requests(self.using)(
            self.admin_site.admin_view(partial(tenant_view, model_admin=self))
        )
        return [
            path("overview/", overview, name="tenantqueue_overview"),
            path("tenant/", of_tenant, name="tenantqueue_tenant"),
            *super().get_urls(),
        ]

    def get_fieldsets(self, request: HttpRequest, obj: TenantQueue | None = None) -> Any:
        """Return the parts of the form. A queue that is being added does nothing yet.

        The executor is shown where there is one.
        """
        parts = super().get_fieldsets(request, obj)
        if get_settings().executors or (obj is not None and obj.executor):
            parts = [*parts, (_("Executor"), {"fields": ("executor",)})]
        return [part for part in parts if obj or "trouble" not in part[1]["fields"]]

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Return a field of the form. The executor is one of the settings."""
        if db_field.name != "executor":
            return super().formfield_for_dbfield(db_field, request, **kwargs)
        names = sorted(get_settings().executors)
        return forms.TypedChoiceField(
            choices=[("", _("none: the workers")), *((name, name) for name in names)],
            empty_value=None,
            required=False,
            label=_("Executor"),
            help_text=db_field.help_text,
        )

    def get_form(
        self, request: HttpRequest, obj: TenantQueue | None = None, change: bool = False, **kw: Any
    ) -> Any:
        """Return the form. An executor that is no longer in the settings stays a choice."""
        made: Any = super().get_form(request, obj, change=change, **kw)
        field = made.base_fields.get("executor")
        gone = None if obj is None else obj.executor
        if field is not None and gone and gone not in get_settings().executors:
            field.choices = [*field.choices, (gone, gone)]
        return made

    def save_model(self, request: HttpRequest, obj: TenantQueue, form: Any, change: bool) -> None:
        """Save a queue; a new one has the executor that the settings give its name."""
        if not change and obj.executor is None:
            obj.executor = get_settings().executor_of(obj.name)
        super().save_model(request, obj, form, change)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return QueueChangeList

    def load(self, rows: Sequence[TenantQueue]) -> None:
        """Give each queue what it does at the moment as `now`."""
        found = read_now(self.using, rows)
        for row in rows:
            row.now = found[row.pk]  # type: ignore[attr-defined]

    @admin.display(description=_("tenant / queue"), ordering="tenant")
    def title(self, queue: TenantQueue) -> SafeString:
        trouble = self.trouble(queue)
        line = format_html("<br>{}", trouble) if trouble else ""
        name = f"{queue.name} → {queue.executor}" if queue.executor else queue.name
        return format_html("{}<br>{}{}", queue.tenant or NOTHING, name, line)

    @admin.display(description=_("problem"), empty_value="")
    def trouble(self, queue: TenantQueue) -> SafeString:
        now, waits = _now(queue), _now(queue).load.waiting > 0
        labels = [
            badge(BADGES.get(trouble, "error" if waits else "held"), trouble.label)
            for trouble in now.troubles
        ]
        if queue.max_waiting is not None and now.load.waiting >= queue.max_waiting:
            labels.append(badge("error", gettext("rejects new jobs")))
        if queue.retired:
            labels.append(badge("held", gettext("retired")))
        return badges(labels)

    @admin.display(description=_("running"), ordering="pk")
    def running(self, queue: TenantQueue) -> SafeString:
        load = _now(queue).load
        text = counted(load.running, COUNTED_TO)
        label = (
            gettext("no limit")
            if queue.num_slots is None
            else gettext("%(running)s of %(slots)s slots are taken")
            % {"running": text, "slots": queue.num_slots}
        )
        return format_html(
            '<span class="tq-number" title="{}">{}</span>{}',
            label,
            jobs_link(queue, "active", text),
            ""
            if not queue.num_slots
            else format_html(
                " / {}<br>{}",
                f"{queue.num_slots:,}",
                gauge(load.running, queue.num_slots, load.waiting, label),
            ),
        )

    @admin.display(description=_("ready"), ordering="pk")
    def waiting(self, queue: TenantQueue) -> SafeString:
        load = _now(queue).load
        text = counted(load.waiting, COUNTED_TO)
        full = queue.max_waiting is not None and load.waiting >= queue.max_waiting
        return format_html(
            '<span class="tq-number{}" title="{}">{}</span>{}',
            " tq-late" if full else "",
            gettext("It rejects new jobs: max waiting is reached") if full else "",
            jobs_link(
                queue,
                "ready",
                text if queue.max_waiting is None else f"{text} / {queue.max_waiting:,}",
            ),
            ""
            if load.wait_seconds is None
            else format_html(
                '<br><small class="tq-number{}" title="{}">{}</small>',
                " tq-late" if load.wait_seconds > LATE_SECONDS else "",
                gettext("Wait of the oldest one"),
                duration_text(load.wait_seconds),
            ),
        )

    @admin.display(description=_("held"))
    def held(self, queue: TenantQueue) -> SafeString | str:
        held = _now(queue).held
        if not held:
            return NOTHING
        jobs = counted(min(sum(one.jobs for one in held), COUNTED_TO), COUNTED_TO)
        return format_html(
            '<span class="tq-number" title="{}">{}</span><br><small class="tq-number{}">{}</small>',
            held_text(held),
            jobs_link(queue, "held", jobs),
            " tq-late" if any(map(is_late, held)) else "",
            duration_text(held[0].wait_seconds),
        )

    @admin.display(description=_("held"))
    def held_by(self, queue: TenantQueue) -> SafeString | str:
        held = _now(queue).held
        return jobs_link(queue, "held", held_text(held)) if held else NOTHING

    @admin.display(description=_("failed (1 h)"))
    def failing(self, queue: TenantQueue) -> SafeString | str:
        now = _now(queue)
        if now.counts.failing is None:
            return NOTHING
        counts = now.counts
        title = gettext(
            "Of %(ended)s runs in the last hour, %(failed)s ended in error, %(retried)s were "
            "retried"
        ) % {name: f"{getattr(counts, name):,}" for name in ("ended", "failed", "retried")}
        text = f"{100 * now.counts.failing:.1f} %"
        return format_html(
            '<span class="tq-number{}" title="{}">{}</span>',
            " tq-late" if counts.failed else "",
            title,
            jobs_link(queue, "error", text) if counts.failed else text,
        )

    @admin.action(permissions=["change"], description=_("Retire selected queues: reject new jobs"))
    def retire_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        self.switch(request, queryset, "retired", True, control.retire)

    @admin.action(permissions=["change"], description=_("Reopen selected queues: accept new jobs"))
    def unretire_selected(self, request: HttpRequest, queryset: QuerySet[TenantQueue]) -> None:
        self.switch(request, queryset, "retired", False, control.reopen)
