"""What the page of one job shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..features import Feature, gathered
from ..models import ConcurrentJobMonitor, Job, Session, TenantQueue, UserLimit, Worker
from ..models.job import RESULT_REMOVED
from ..states import WAITING, State
from ..status.changes import changes_of
from ..status.deaths import death_of
from ..status.display_limits import LINE, TEXT
from ..stored_error import entries_of
from ..tracebacks import Part, folded
from .formats import (
    duration_text,
    json_text,
    moment,
    parse_moment,
    progress_bar,
    state_badge,
)
from .job_causes import answer_for
from .job_values import shown_columns, shown_result
from .links import job_url, link_to, place_link, task_link
from .timeline import make_timeline
from .visible import sees_queues


@dataclass(frozen=True, slots=True)
class Button:
    """A button of the page: the name it posts and what it says."""

    name: str
    label: Any
    title: Any


_RETRY = Button("_retry", _("Retry"), _("Make it ready again, with fresh attempts"))
_RUN_NOW = Button("_run_now", _("Run now"), _("Make it ready without waiting for its time"))
_CANCEL = Button("_cancel", _("Cancel"), _("End it; it never starts"))
_STOP = Button(
    "_cancel", _("Ask to stop"), _("The task stops at its next check, or is interrupted")
)

ACTIONS_OF: dict[State, tuple[Button, ...]] = {
    State.SCHEDULED: (_RUN_NOW, _CANCEL),
    State.HELD: (_CANCEL,),
    State.READY: (_CANCEL,),
    State.QUEUED: (_STOP,),
    State.RUNNING: (_STOP,),
    State.SUCCESS: (),
    State.ERROR: (_RETRY,),
    State.CANCELLED: (_RETRY,),
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One error of the job, as the page shows it."""

    attempt: Any
    stored_at: str
    at: SafeString | str
    kind: str
    message: str
    traceback: Sequence[Part]

    @property
    def short(self) -> str:
        """The first line of the message, or its beginning."""
        return self.message.strip().partition("\n")[0][:LINE]

    @property
    def is_longer(self) -> bool:
        """Whether the message is longer."""
        return self.short != self.message.strip()

    @property
    def has_traceback(self) -> bool:
        """Whether any is kept."""
        return any(part.text for part in self.traceback)

    @property
    def key(self) -> str:
        """Identifies the error among those of the job while the page refreshes itself."""
        return f"{self.attempt} {self.stored_at}"


def is_tunable(job: Job) -> bool:
    """Whether priority, time and queue of the job can still be changed."""
    return job.state in WAITING


def describe_state(
    site: AdminSite, request: HttpRequest, using: str, job: Job, queue: TenantQueue | None
) -> dict[str, Any]:
    """Return what the page shows and refreshes while the job is unfinished."""
    worker = Worker.objects.using(using).filter(pk=job.worker_id).first() if job.worker_id else None
    shown = shown_columns(job)
    return {
        "job": job,
        "task": task_link(job.task),
        "badge": state_badge(job.state),
        "queue": queue and (place_link(queue) if sees_queues(request) else str(queue)),
        "death": death_of(using, job.worker_id) if job.worker_id and worker is None else None,
        "worker": worker and link_to(site, request, Worker, worker.pk, worker.name),
        "timeline": make_timeline(job, changes=changes_of(using, job)),
        "answer": answer_for(site, request, using, job),
        "progress": _progress(job),
        "result": shown_result(job),
        "result_url": job_url(job.pk, site, "value", "result"),
        "failures": _failures(entries_of(job.errors)),
        "stats": _pairs(shown["stats"]),
        "facts": _facts(site, request, using, job, shown),
    }


def _progress(job: Job) -> dict[str, Any] | None:
    if job.progress_done is None and job.progress_message is None:
        return None
    text = "" if job.progress_done is None else f"{job.progress_done:g}"
    if job.progress_total is not None:
        text = gettext("%(done)s of %(total)s") % {"done": text, "total": f"{job.progress_total:g}"}
    return {"bar": progress_bar(job.progress_percent, text), "message": job.progress_message or ""}


def _failures(errors: Sequence[dict[str, Any]]) -> list[Failure]:
    return [
        Failure(
            error.get("attempt", "?"),
            str(error.get("at", "")),
            moment(parse_moment(error.get("at"))),
            str(error.get("class", "")),
            str(error.get("message", "")),
            folded(str(error.get("traceback") or "")),
        )
        for error in reversed(errors)
    ]


def _pairs(values: Any) -> list[tuple[str, str]]:
    if not isinstance(values, dict):
        return []
    texts = (
        (name, value if isinstance(value, str) else json_text(value))
        for name, value in values.items()
    )
    return [(name, text if len(text) <= TEXT else f"{text[:TEXT]}…") for name, text in texts]


def _gate_link(site: AdminSite, request: HttpRequest, using: str, job: Job, kind: str) -> Any:
    model = UserLimit if kind == Session.Kind.LIMIT_USER else Session
    key = job.limit_user if kind == Session.Kind.LIMIT_USER else job.session_key
    if key is None:
        return None
    row = model._default_manager.using(using).filter(kind=kind, gate_key=key).first()
    return key if row is None else link_to(site, request, model, row.pk, key)


def _source(site: AdminSite, request: HttpRequest, job: Job) -> SafeString:
    parts = [part for part in (job.source_type, job.source_id, job.source_method) if part]
    try:
        model = apps.get_model(job.source_type.partition("@")[0])
    except (LookupError, ValueError):
        return format_html("{}", " ".join(parts))
    name = f"{job.source_type} {job.source_id}"
    link = link_to(site, request, model, job.source_id, name)
    return format_html("{} {}", link, job.source_method)


def _follow_up_links(site: AdminSite, request: HttpRequest, job: Job, on: str) -> SafeString | None:
    """Return what follows a job `on` "success" or "end", with links to what was enqueued.

    None: nothing follows it.
    """
    found = [stored for stored in _stored_follow_ups(job.follow_ups) if stored.get("on") == on]
    if not found:
        return None
    return format_html_join(
        ", ", "{}", ((_follow_up(site, request, job, stored),) for stored in found)
    )


def _follow_up(
    site: AdminSite, request: HttpRequest, job: Job, stored: dict[str, Any]
) -> SafeString:
    names = " → ".join(_names(stored))
    if (job_id := stored.get("id")) is not None:
        return format_html("{} {}", link_to(site, request, Job, job_id, f"#{job_id}"), names)
    if job.state in (State.ERROR, State.CANCELLED):
        why = gettext("not enqueued: this job has not succeeded. A retry that succeeds enqueues it")
        return format_html("{} ({})", names, why)
    return format_html("{}", names)


def _names(stored: dict[str, Any]) -> Sequence[str]:
    """Return the names of a chain of tasks, from the next one to the last."""
    names = [str(stored.get("task", ""))]
    for further in _stored_follow_ups(stored.get("follow_ups")):
        if further["on"] == "success":
            return [*names, *_names(further)]
    return names


def _stored_follow_ups(follow_ups: Any) -> list[dict[str, Any]]:
    """Return the stored follow-ups, without values that only raw SQL could have written."""
    found = follow_ups if isinstance(follow_ups, list) else []
    return [stored for stored in found if isinstance(stored, dict) and "on" in stored]


def _facts(
    site: AdminSite, request: HttpRequest, using: str, job: Job, shown: dict[str, Any]
) -> list[tuple[Any, Any]]:
    monitor, previous = job.monitor_id, job.previous_id
    found: list[tuple[Any, Any]] = [
        (_("task or method"), _source(site, request, job)),
        (_("priority"), job.priority),
        (_("attempt"), f"{job.attempt} / {job.max_attempts}"),
        (_("labels"), ", ".join(job.labels or ())),
        (_("created by"), job.created_by),
        (_("expires"), moment(job.expires_at) if job.expires_at else None),
        (_("time limit"), duration_text(job.timeout_seconds) if job.timeout_seconds else None),
        (_("session"), _gate_link(site, request, using, job, Session.Kind.SERIAL)),
        (_("user limit"), _gate_link(site, request, using, job, Session.Kind.LIMIT_USER)),
        (
            _("monitor"),
            monitor and link_to(site, request, ConcurrentJobMonitor, monitor, f"#{monitor}"),
        ),
        (_("after job"), previous and link_to(site, request, Job, previous, f"#{previous}")),
        (_("on success"), _follow_up_links(site, request, job, "success")),
        (_("on end"), _follow_up_links(site, request, job, "end")),
        (_("exclusive key"), shown["exclusive_key"]),
        (_("unique key"), shown["unique_key"]),
        (_("uniqueness"), job.unique_mode),
        (_("result location"), None if job.result_ref == RESULT_REMOVED else job.result_ref),
    ]
    found += gathered(Feature.job_facts, request, job, using=using)
    context = _pairs(shown["context"])
    return [(label, value) for label, value in [*found, *context] if value not in (None, "")]
