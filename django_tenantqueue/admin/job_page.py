"""What the page of one job shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..models import Job, Session, TenantQueue, UserCap, Worker
from ..states import WAITING, State
from ..status.changes import changes_of
from .formats import (
    duration_text,
    json_text,
    moment,
    parse_moment,
    progress_bar,
    state_badge,
)
from .job_causes import answer_for
from .timeline import make_timeline


@dataclass(frozen=True, slots=True)
class Button:
    """A button of the page: the name it posts and what it says."""

    name: str
    label: Any
    title: Any


_RETRY = Button("_retry", _("Retry"), _("Make it ready again, with fresh attempts"))
_RUN_NOW = Button("_run_now", _("Run now"), _("Make it ready without waiting for its time"))
_CANCEL = Button("_cancel", _("Cancel"), _("End it; it never starts"))
_STOP = Button("_cancel", _("Ask to stop"), _("The task stops where it looks, or is interrupted"))

ACTIONS_OF: dict[State, tuple[Button, ...]] = {
    State.SCHEDULED: (_RUN_NOW, _CANCEL),
    State.HELD: (_CANCEL,),
    State.CREATED: (_CANCEL,),
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
    at: SafeString | str
    kind: str
    message: str
    traceback: str


def is_tunable(job: Job) -> bool:
    """Whether priority, time and queue of the job can still be changed."""
    return job.state in WAITING


def describe(using: str, job: Job) -> dict[str, Any]:
    """Return what the template needs of a job."""
    queue = TenantQueue.objects.using(using).filter(pk=job.queue_id).first()
    worker = Worker.objects.using(using).filter(pk=job.worker_id).first() if job.worker_id else None
    return {
        "job": job,
        "badge": state_badge(job.state),
        "queue": queue,
        "worker": worker,
        "timeline": make_timeline(job, changes=changes_of(using, job)),
        "answer": answer_for(using, job),
        "progress": _progress(job),
        "arguments": _arguments(job),
        "result": _result(job),
        "failures": _failures(job.kept_errors),
        "stats": _pairs(job.stats),
        "facts": _facts(using, job),
    }


def _gate_row(using: str, kind: Session.Kind, key: str | None) -> Session | None:
    if key is None:
        return None
    model = UserCap if kind == Session.Kind.USER else Session
    return model._default_manager.using(using).filter(kind=kind, gate_key=key).first()


def _url_of(row: Session) -> str:
    return reverse(f"admin:tenantqueue_{row._meta.model_name}_change", args=[row.pk])


def _progress(job: Job) -> dict[str, Any] | None:
    if job.progress_done is None and job.progress_message is None:
        return None
    text = "" if job.progress_done is None else f"{job.progress_done:g}"
    if job.progress_total is not None:
        text = gettext("%(done)s of %(total)s") % {"done": text, "total": f"{job.progress_total:g}"}
    return {
        "bar": progress_bar(job.progress_percent, text),
        "message": job.progress_message or "",
    }


def _arguments(job: Job) -> list[tuple[str, str]]:
    call = job.args if isinstance(job.args, dict) else {"args": job.args}
    positional = call.get("args") or []
    keyword = call.get("kwargs") or {}
    if not isinstance(positional, list) or not isinstance(keyword, dict):
        return [("args", json_text(job.args))]  # raw SQL has put something else there
    return [
        *((str(index), json_text(value)) for index, value in enumerate(positional, 1)),
        *((name, json_text(value)) for name, value in keyword.items()),
    ]


def _result(job: Job) -> dict[str, Any] | None:
    if job.state != State.SUCCESS:
        return None
    try:
        value = job.result
    except LookupError as error:
        return {"missing": str(error)}
    if value is None:
        return {"nothing": True}
    return {"text": json_text(value)}


def _failures(errors: Sequence[dict[str, Any]]) -> list[Failure]:
    return [
        Failure(
            error.get("attempt", "?"),
            moment(parse_moment(error.get("at"))),
            str(error.get("class", "")),
            str(error.get("message", "")),
            str(error.get("traceback", "")),
        )
        for error in reversed(errors)
    ]


def _pairs(values: Any) -> list[tuple[str, str]]:
    if not isinstance(values, dict):
        return []
    return [
        (name, value if isinstance(value, str) else json_text(value))
        for name, value in values.items()
    ]


def _monitor_link(monitor_id: int | None) -> SafeString | None:
    if monitor_id is None:
        return None
    url = reverse("admin:tenantqueue_concurrentjobmonitor_change", args=[monitor_id])
    return format_html('<a href="{}">#{}</a>', url, monitor_id)


def _gate_link(using: str, kind: Session.Kind, key: str | None) -> SafeString | str | None:
    row = _gate_row(using, kind, key)
    return key if row is None else format_html('<a href="{}">{}</a>', _url_of(row), key)


def _facts(using: str, job: Job) -> list[tuple[Any, Any]]:
    """Return the other columns that hold something, with their names."""
    parts = (job.source_type, job.source_id, job.source_method)
    source = " ".join(part for part in parts if part)
    found: list[tuple[Any, Any]] = [
        (_("task or method"), source),
        (_("priority"), job.priority),
        (_("attempt"), f"{job.attempt} / {job.max_attempts}"),
        (_("labels"), ", ".join(job.labels or ())),
        (_("created by"), job.created_by),
        (_("expires"), moment(job.expires_at) if job.expires_at else None),
        (_("time limit"), duration_text(job.timeout_seconds) if job.timeout_seconds else None),
        (_("session"), _gate_link(using, Session.Kind.SERIAL, job.session_key)),
        (_("user"), _gate_link(using, Session.Kind.USER, job.user_key)),
        (_("monitor"), _monitor_link(job.monitor_id)),
        (_("exclusive key"), job.exclusive_key),
        (_("unique key"), job.unique_key),
        (_("uniqueness"), job.unique_mode),
        (_("result kept in"), job.result_ref),
    ]
    context = _pairs(job.context)
    return [(label, value) for label, value in [*found, *context] if value not in (None, "")]
