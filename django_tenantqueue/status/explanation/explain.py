"""Asks everything that may keep a job from running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext

from ...execution.outcome import UNKNOWN_CLASS
from ...gate_keys import EXCLUSIVE, LIMIT_USER, MONITOR, ORDER, SESSION, TASK
from ...models import Change, Job, TenantQueue, Worker
from ...models.worker import RESEND_SECONDS, Role
from ...queries.lists import read_in_order
from ...states import ACTIVE, State
from ...stored_error import entries_of
from ..conditions import Code
from ..figures import duration_text
from ..thresholds import PROMOTION_LATE
from ..workers import WorkerState, state_of
from .answer import Cause, Explanation, cause_of, sorted_causes
from .done_by import who_did
from .gate_causes import exclusive_causes, session_causes, task_causes, user_causes
from .monitor_causes import monitor_causes
from .names import gate_name, moment_text, target_of, until_text
from .queue_causes import queue_causes
from .worker_causes import worker_causes


def explain(using: str, job: Job) -> Explanation:
    """Return what a job does, and each cause that keeps it from running, worst first.

    Some twenty reads at most, each of an index and bounded, on the database `using`.
    """
    with read_in_order(using):
        return _explain(using, job)


def _explain(using: str, job: Job) -> Explanation:
    queues = TenantQueue.objects.using(using).annotate(read_at=Now())
    queue = queues.filter(pk=job.queue_id).first()
    now: datetime = timezone.now() if queue is None else queue.read_at
    if job.final:
        sentence, causes = _ended(job), []
    elif job.state in ACTIVE:
        worker = Worker.objects.using(using).filter(pk=job.worker_id or 0).first()
        sentence, causes = _runs(job, worker, now), list(_run_causes(job, worker, now))
    else:
        causes = sorted_causes(list(_wait_causes(using, job, queue, now)))
        sentence = _waits(job, causes)
    return Explanation(job.pk, job.task, job.state, sentence, causes, now)


def _ended(job: Job) -> str:
    at = "" if job.finished_at is None else moment_text(job.finished_at)
    if job.state == State.SUCCESS:
        return gettext("It has ended with success, at %s.") % at
    if job.state == State.CANCELLED:
        return gettext("It was cancelled, at %s.") % at
    error = job.last_error or {}
    told = gettext("It has ended in error after %(attempt)d of %(most)d attempts, at %(at)s.")
    told %= {"attempt": job.attempt, "most": job.max_attempts, "at": at}
    return f"{told} {_error_text(error)}".rstrip()


def _error_text(error: dict[str, object]) -> str:
    if not error:
        return ""
    message = str(error.get("message", "")).strip().partition("\n")[0][:200]
    return gettext("Last error: %(class)s: %(message)s") % {
        "class": str(error.get("class", "?")).rpartition(".")[2],
        "message": message,
    }


def _runs(job: Job, worker: Worker | None, now: datetime) -> str:
    name = f"#{job.worker_id}" if worker is None else worker.name
    values = {"worker": name, "attempt": job.attempt, "most": job.max_attempts}
    since = job.started_at if job.state == State.RUNNING else job.queued_at
    if since is not None:
        values |= {"for": duration_text(now - since), "since": moment_text(since)}
    if worker is not None and worker.role != Role.WORKER:
        values["executor"] = worker.executor
    if worker is not None and worker.role == Role.DISPATCHER:
        values.setdefault("for", duration_text(0.0))
        told = gettext(
            "Dispatcher %(worker)s sent it to the executor %(executor)s %(for)s ago. No process "
            "has accepted it yet."
        )
    elif worker is not None and worker.role == Role.RUNNER and since is not None:
        told = gettext(
            "It has been running for %(for)s, since %(since)s, in the process %(worker)s of the "
            "executor %(executor)s, attempt %(attempt)d of %(most)d."
        )
    elif job.state == State.RUNNING and since is not None:
        told = gettext(
            "It has been running for %(for)s, since %(since)s, on worker %(worker)s, attempt "
            "%(attempt)d of %(most)d."
        )
    else:
        told = gettext("Worker %(worker)s claimed it %(for)s ago, and is about to start it.")
        values.setdefault("for", duration_text(0.0))
    return told % values


def _run_causes(job: Job, worker: Worker | None, now: datetime) -> Iterator[Cause]:
    if worker is None:
        yield cause_of(Code.WORKER_GONE)
    elif state_of(worker, now) == WorkerState.SILENT:
        values = {"for": duration_text(now - worker.heartbeat_at)}
        yield cause_of(Code.WORKER_SILENT, values, target_of(worker))
    elif worker.role == Role.DISPATCHER and job.queued_at is not None:
        waits = now - job.queued_at
        if waits.total_seconds() >= RESEND_SECONDS:
            values = {"executor": worker.executor, "for": duration_text(waits)}
            yield cause_of(Code.NOT_TAKEN_OVER, values, target_of(worker))
    if job.cancel_requested_at is not None:
        yield cause_of(
            Code.CANCEL_REQUESTED,
            {"at": moment_text(job.cancel_requested_at)},
            done_by=who_did(job, Change.Action.CANCEL),
        )


def _waits(job: Job, causes: list[Cause]) -> str:
    if job.state == State.HELD:
        return gettext("It is held by its %s, and not ready yet.") % gate_name(job.held_by)
    if job.state == State.SCHEDULED:
        return gettext("It waits for its time.")
    if not causes:
        return gettext("It is ready, and nothing holds it: the next claim takes it.")
    return gettext("It is ready, and waits to be claimed.")


def _wait_causes(using: str, job: Job, queue: TenantQueue | None, now: datetime) -> Iterator[Cause]:
    ready = job.state == State.READY
    if (job.last_error or {}).get("class") == UNKNOWN_CLASS:
        yield cause_of(Code.UNKNOWN_TASK, {"task": job.task})
    elif not ready:
        yield from _time_causes(job, now)
    if queue is None:
        yield cause_of(Code.QUEUE_MISSING, {"queue": job.queue_id})
    else:
        yield from queue_causes(using, job, queue, ready=ready)
        yield from worker_causes(using, job, queue, now, ready=ready)
    held = list(_gate_causes(using, job, queue, now))
    yield from held
    if job.state == State.HELD and not held and job.held_by in ORDER:
        yield cause_of(Code.NOT_RELEASED, {"gate": gate_name(job.held_by)})


def _time_causes(job: Job, now: datetime) -> Iterator[Cause]:
    if job.run_at > now:
        when = until_text(job.run_at, now)
        if job.attempt and entries_of(job.errors):
            values = {
                "next": job.attempt + 1,
                "most": job.max_attempts,
                "when": when,
                "error": _error_text(job.last_error or {}),
            }
            yield cause_of(Code.BACKOFF, values)
        else:
            yield cause_of(Code.SCHEDULED, {"when": when})
    elif job.state == State.SCHEDULED and now - job.run_at > PROMOTION_LATE:
        yield cause_of(Code.PROMOTION_LATE, {"when": until_text(job.run_at, now)})


def _gate_causes(using: str, job: Job, queue: TenantQueue | None, now: datetime) -> Iterator[Cause]:
    """Yield what holds it: its current gate, and those after that."""
    busy = job.state != State.SCHEDULED
    looks: dict[str, Callable[[], Iterator[Cause]]] = {
        MONITOR: lambda: monitor_causes(using, job, queue, now),
        SESSION: lambda: session_causes(using, job.session_key or "", job.pk, now),
        LIMIT_USER: lambda: user_causes(using, job.limit_user or "", busy=busy),
        EXCLUSIVE: lambda: exclusive_causes(using, job),
        TASK: lambda: task_causes(using, job, busy=busy),
    }
    for kind in _gates_before(job):
        yield from looks[kind]()


def _gates_before(job: Job) -> list[str]:
    has = {
        MONITOR: job.monitor_id is not None,
        SESSION: job.session_key is not None,
        LIMIT_USER: job.limit_user is not None,
        EXCLUSIVE: job.exclusive_key is not None,
        TASK: True,
    }
    if job.state == State.READY:
        first = TASK
    elif job.state == State.SCHEDULED:
        has[EXCLUSIVE] = False  # which job has the key then is not known now
        first = LIMIT_USER
    elif job.held_by == "details":
        return [MONITOR]
    else:
        first = str(job.held_by)
    if first not in ORDER:
        return []  # raw SQL has put something else there
    return [kind for kind in ORDER[ORDER.index(first) :] if has[kind]]
