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

from ..execution.outcome import UNKNOWN_CLASS
from ..models import Job, Session, TaskControl, TenantQueue, UserCap, Worker
from ..operations.sessions import session_loads
from ..queries.tasks import is_closed
from ..states import WAITING, State
from ..status.queue_loads import loads, seconds_to_start
from .formats import (
    duration_text,
    json_text,
    moment,
    parse_moment,
    progress_bar,
    state_badge,
)
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
        "timeline": make_timeline(job),
        "waits_for": _waits_for(using, job, queue),
        "progress": _progress(job),
        "arguments": _arguments(job),
        "result": _result(job),
        "failures": _failures(job.kept_errors),
        "stats": _pairs(job.stats),
        "facts": _facts(using, job),
    }


def _waits_for(using: str, job: Job, queue: TenantQueue | None) -> SafeString | str | None:
    """Say what keeps a waiting job from running, as far as its own row and queue tell."""
    if job.state == State.SCHEDULED:
        if not _is_unknown(job):
            return gettext("It waits for its time.")
        return (
            gettext(
                "No worker that claimed it knows the task “%s”: it is given back for a while. "
                "Start workers with the code that has it."
            )
            % job.name
        )
    if job.state == State.HELD:
        return _held_by(using, job)
    if job.state != State.CREATED or queue is None:
        return None
    if queue.paused:
        return gettext("Its queue is paused.")
    if (closed := _held_by_task(using, job)) is not None:
        return closed
    load = loads(using, [queue.pk]).get(queue.pk)
    if load is not None and queue.num_slots is not None and load.running >= queue.num_slots:
        return gettext("All %d slots of its queue are taken.") % queue.num_slots
    if seconds := seconds_to_start(using, queue):
        return gettext(
            "Its queue may start %(rate)s jobs in a second: the next one in %(time)s."
        ) % {"rate": f"{queue.max_per_second:g}", "time": duration_text(seconds)}
    if not Worker.objects.using(using).filter(draining=False, stopping=False).exists():
        return gettext("No worker is running: start one with “manage.py runworker”.")
    return gettext("It waits for its turn and a free worker.")


def _is_unknown(job: Job) -> bool:
    """Whether the job was last given back by a worker that does not know its task."""
    last = job.last_error or {}
    return last.get("class") == UNKNOWN_CLASS


def _held_by(using: str, job: Job) -> SafeString | str:
    """Say which gate holds a job."""
    match job.held_by:
        case "monitor":
            return gettext("Its monitor has not fed it yet.")
        case "details":
            return gettext("It runs after the last detail of its monitor.")
        case "session":
            return _held_by_session(using, job)
        case "user":
            return gettext("Its user has reached the cap of running jobs.")
        case "exclusive":
            return gettext("Another job of the same exclusive key runs.")
        case "task":
            return _held_by_task(using, job) or gettext(
                "It was held back by its task: it goes on within seconds."
            )
    return gettext("It is held back by its %s.") % job.held_by


def _held_by_task(using: str, job: Job) -> SafeString | None:
    """Say why its task starts no job now; None: it may start some."""
    control = TaskControl.objects.using(using).filter(name=job.name).first()
    if control is None or (not control.paused and not is_closed(using, job.name)):
        return None
    return _with_link(
        gettext("Its task is paused.")
        if control.paused
        else gettext("Its task has reached its cap."),
        gettext("task"),
        control,
    )


def _held_by_session(using: str, job: Job) -> SafeString | str:
    session = _gate_row(using, Session.Kind.SERIAL, job.session_key)
    if session is None:
        return gettext("It stands in the line of its session.")
    if session.halted_at is not None:
        told = gettext("Its session has halted since job #%d did not end well: resume it there.")
        return _with_link(told % (session.halted_by or 0), gettext("session"), session)
    if session.paused:
        return _with_link(gettext("Its session is paused."), gettext("session"), session)
    load = session_loads(using, [session.pk]).get(session.pk)
    before = None if load is None else load.first_id or load.head_id
    told = gettext("It stands in the line of its session")
    if before in (None, job.pk):
        return _with_link(f"{told}.", gettext("session"), session)
    url = reverse("admin:tenantqueue_job_change", args=[before])
    behind = format_html('{}, {} <a href="{}">#{}</a>.', told, gettext("behind job"), url, before)
    return _with_link(behind, gettext("session"), session)


def _gate_row(using: str, kind: Session.Kind, key: str | None) -> Session | None:
    if key is None:
        return None
    model = UserCap if kind == Session.Kind.USER else Session
    return model._default_manager.using(using).filter(kind=kind, gate_key=key).first()


def _with_link(told: str, label: str, row: Session | TaskControl) -> SafeString:
    """Return a sentence with a link to the page of what holds the job."""
    return format_html('{} <a href="{}">{}: {}</a>', told, _url_of(row), label, row)


def _url_of(row: Session | TaskControl) -> str:
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
