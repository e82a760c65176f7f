"""Sessions with their lines of jobs, and user limits, both tuned live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import date as format_date
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..models import Job, Session, UserLimit
from ..operations import sessions as operations
from ..operations.sessions import session_loads
from ..queries.gates import SessionLoad
from ..states import State
from ..status.display_limits import COUNTED_TO
from .base import EmptyList, jobs_hidden
from .filters import TENANT_FILTERS, HaltedFilter
from .formats import NOTHING, badge, badges, counted, state_badge, table
from .links import job_link, task_link
from .live_admin import LinedAdmin

_S = TypeVar("_S", bound=Session)


def _moment(moment: Any) -> str:
    return format_date(timezone.localtime(moment), "DATETIME_FORMAT")


def reason(session: Session) -> SafeString | str:
    """Say what keeps the line from moving, or what runs."""
    load: SessionLoad = session.load  # type: ignore[attr-defined]
    if session.halted_at is not None:
        return format_html(
            gettext("{halted} since {at}: job {job} failed"),
            halted=badge("error", gettext("halted")),
            at=_moment(session.halted_at),
            job=job_link(session.halted_by) if session.halted_by else "–",
        )
    if session.paused:
        return badge("error" if load.line else "held", gettext("paused"))
    if load.first_id is not None:
        job = job_link(load.first_id)
        match load.first_state:
            case State.RUNNING | State.QUEUED:
                return format_html(gettext("job {} runs"), job)
            case State.SCHEDULED:
                return format_html(
                    gettext("job {job} waits for another attempt at {at}"),
                    job=job,
                    at=_moment(load.first_run_at),
                )
            case State.HELD:
                return _held(load, job)
            case _:
                return format_html(gettext("job {} is next; it waits for a slot"), job)
    if load.head_run_at is not None and load.head_run_at > timezone.now():
        return format_html(
            gettext("job {job} is next; it waits for its time, {at}"),
            job=job_link(load.head_id or 0),
            at=_moment(load.head_run_at),
        )
    return gettext("idle") if not load.line else gettext("the next job is about to be released")


def _held(load: SessionLoad, job: SafeString) -> SafeString:
    match load.first_held_by:
        case "details":
            return format_html(gettext("{} has its turn"), _monitor_link(load.first_monitor_id))
        case "limit_user":
            return format_html(gettext("job {} is next; its user's slots are taken"), job)
        case "exclusive":
            return format_html(gettext("job {} is next; another with its unique key runs"), job)
        case _:
            return format_html(gettext("job {} is next; its task is paused or limited"), job)


def _monitor_link(monitor_id: int | None) -> SafeString:
    url = reverse("admin:tenantqueue_concurrentjobmonitor_change", args=[monitor_id])
    return format_html('<a href="{}">{}</a>', url, gettext("monitor #%s") % monitor_id)


class LineAdmin(LinedAdmin[_S]):
    """What sessions and user limits have in common."""

    search_fields = ("key",)
    search_help_text = _("A part of the key.")
    ordering = ("tenant", "key")
    tunable = operations.TUNABLE
    operation = staticmethod(operations.tune_session)
    pause = staticmethod(operations.pause_sessions)
    resume = staticmethod(operations.resume_sessions)
    pause_text = _(
        "No further jobs of these sessions are released until you resume them. Ready and running "
        "jobs continue."
    )

    def load(self, rows: Sequence[_S]) -> None:
        found = session_loads(self.using, [row.pk for row in rows]) if rows else {}
        for row in rows:
            row.load = found.get(row.pk, SessionLoad(row.pk, 0, 0))  # type: ignore[attr-defined]

    @admin.display(description=_("unfinished jobs"))
    def jobs(self, session: Session) -> SafeString | str:
        if not session.may_view_jobs:  # type: ignore[attr-defined]
            return jobs_hidden()
        held = Job.objects.using(self.using).filter(final=False, state=State.HELD)
        column = "session_key" if session.kind == Session.Kind.SERIAL else "limit_user"
        own = session.jobs().using(self.using).select_related("queue")
        by_gate = "session" if session.kind == Session.Kind.SERIAL else "limit_user"
        inside = list(own.exclude(held_by=by_gate).exclude(held_by="monitor")[:50])
        line = list(
            held.filter(held_by=by_gate, **{column: session.gate_key})
            .select_related("queue")
            .order_by(column, "priority", "run_at", "pk")[:50]
        )
        if not inside and not line:
            return gettext("none")
        titles = (_("job"), _("state"), _("task"), _("priority"), _("queue"))
        rows = (
            (
                job_link(job.pk),
                state_badge(job.state),
                task_link(job.task),
                job.priority,
                job.queue.name,
            )
            for job in (*inside, *line)
        )
        load: SessionLoad = session.load  # type: ignore[attr-defined]
        more = load.line - len(line)
        return format_html(
            "{}{}",
            table(titles, rows),
            gettext("and %s more held") % counted(more, COUNTED_TO) if more > 0 else "",
        )


@admin.register(Session)
class SessionAdmin(LineAdmin[Session]):
    """Sessions: one job after another."""

    export_name = "sessions"
    empty_list = EmptyList(
        _("No session has jobs."),
        _(
            "A session appears with its first job and disappears when it is idle. A task sets its "
            "session with"
        ),
        ".using(session=…)",
    )
    addable = False  # a session is made when its first job is released
    list_display = ("title", "why", "inside", "line", "paused")
    list_display_links = ("title",)
    list_editable = ("paused",)
    list_filter = ("paused", HaltedFilter, *TENANT_FILTERS)
    readonly_fields = ("tenant", "key", "why", "jobs", "created_at")
    fieldsets = (
        (None, {"fields": (("tenant", "key"), "why")}),
        (_("Takes effect at the next release"), {"fields": ("paused", "on_wait", "on_failure")}),
        (_("Now"), {"fields": ("jobs", "created_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        return super().get_queryset(request).filter(kind=Session.Kind.SERIAL)

    @admin.display(description=_("session"), ordering="key")
    def title(self, session: Session) -> SafeString:
        return format_html("{}<br><small>{}</small>", session.key, session.tenant or NOTHING)

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the input of a choice: without one, each job brings its own."""
        return super().formfield_for_choice_field(
            db_field, request, choices=[("", gettext("set by the job")), *db_field.choices]
        )

    @admin.display(description=_("reason"))
    def why(self, session: Session) -> SafeString | str:
        return reason(session)

    @admin.action(
        permissions=["change"], description=_("Resume selected sessions, paused or halted")
    )
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        changed = len(operations.resume_sessions(ids, using=self.using))
        self.message_user(
            request, ngettext("%d session resumed.", "%d sessions resumed.", changed) % changed
        )


@admin.register(UserLimit)
class UserLimitAdmin(LineAdmin[UserLimit]):
    """User limits: how many jobs of a user run at once."""

    export_name = "user-limits"
    empty_list = EmptyList(
        _("No user has jobs or a limit."),
        _(
            "A user limit appears with the user's first job. To set slots before that, add the "
            "limit. A task sets its user with"
        ),
        ".using(limit_user=…)",
    )

    pause_text = _(
        "No further jobs of these users are released until you resume them. Ready and running "
        "jobs continue."
    )
    fixed = ("tenant", "key")
    list_display = ("user", "trouble", "num_slots", "inside", "line", "paused")
    list_display_links = ("user",)
    list_editable = ("num_slots", "paused")
    list_filter = ("paused", *TENANT_FILTERS)
    readonly_fields = ("jobs", "created_at")
    fieldsets = (
        (None, {"fields": (("tenant", "key"),)}),
        (_("Takes effect at the next release"), {"fields": ("num_slots", "paused")}),
        (_("Now"), {"fields": ("jobs", "created_at")}),
    )

    @admin.display(description=_("problem"), empty_value="")
    def trouble(self, limit: UserLimit) -> SafeString:
        return badges(self.troubles(limit))

    @admin.display(description=_("user"), ordering="key")
    def user(self, limit: UserLimit) -> SafeString:
        user = limit.key or gettext("(all users without a limit of their own)")
        return format_html("{}<br><small>{}</small>", user, limit.tenant or NOTHING)
