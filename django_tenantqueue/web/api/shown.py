"""Jobs, queues and the other rows as clients see them: without what is secret or internal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...calls.arguments import MARK, read_float
from ...models import ConcurrentJobMonitor, Job, Schedule, Session, TenantQueue
from ...operations.sessions import session_loads
from ...status.job_status import describe_job, job_progress
from ...status.masking import mask_of_job, masked
from ...status.monitor_progress import progress_of
from ...status.queue_loads import loads

HEAVY = ("args", "context", "result_data", "errors", "stats")
"""Columns that lists and streams do not read: they may be large."""
QUEUE = (
    *("id", "name", "num_slots", "weight", "max_per_second", "burst", "max_waiting"),
    *("paused", "retired"),
)
SESSION = (
    *("id", "kind", "key", "num_slots", "paused", "on_wait", "on_failure"),
    *("halted_at", "halted_by"),
)
MONITOR = (
    *("id", "name", "parallel", "interval", "priority", "paused", "stop_after_failures"),
    *("created_at", "cancelled_at"),
)
PROGRESS = (
    *("status", "total", "done", "failed", "cancelled", "running", "waiting", "percent"),
    "ends_at",
)
SCHEDULE = (
    *("id", "name", "task", "queue", "priority", "kind", "expression", "time_zone"),
    *("jitter_seconds", "catch_up", "overlap", "starts_at", "ends_at", "enabled", "source"),
    *("next_at", "last_at", "last_job_id", "failures", "last_error"),
)


def _columns(row: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def job_summary(job: Job) -> dict[str, Any]:
    """Return what lists tell of a job, whose queue is loaded."""
    return {
        "id": job.pk,
        "name": job.name,
        "queue": job.queue.name,
        "state": job.state,
        "final": job.is_final,
        "priority": job.priority,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "progress": job_progress(job),
        "labels": job.labels or [],
        "created_by": job.created_by,
        "created_at": job.created_at,
        "run_at": job.run_at,
        "expires_at": job.expires_at,
        "queued_at": job.queued_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "cancel_requested_at": job.cancel_requested_at,
    }


def job_details(job: Job) -> dict[str, Any]:
    """Return all that a client may know of a job: masked arguments, no tracebacks."""
    call = mask_of_job(job).call(job.args)
    if MARK in (text := json.dumps(call)):
        call = json.loads(text, object_hook=read_float)
    args, kwargs = (call.get("args"), call.get("kwargs")) if isinstance(call, dict) else (call, {})
    told = describe_job(job)
    return {
        **job_summary(job),
        "args": args or [],
        "kwargs": kwargs or {},
        **{name: told[name] for name in ("result", "result_missing", "error")},
        "errors": [_error(entry) for entry in job.kept_errors],
        "stats": masked(job.stats),
    }


def _error(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "at": entry.get("at"),
        "attempt": entry.get("attempt"),
        "error_class": entry.get("class"),
        "message": entry.get("message"),
    }


def queue_details(using: str, rows: Iterable[TenantQueue]) -> list[dict[str, Any]]:
    """Return queues with their counts: one statement for all of them."""
    queues = list(rows)
    counts = loads(using, [row.pk for row in queues])
    return [
        {
            **_columns(row, QUEUE),
            "running": counts[row.pk].running if row.pk in counts else 0,
            "waiting": counts[row.pk].waiting if row.pk in counts else 0,
        }
        for row in queues
    ]


def session_details(using: str, rows: Iterable[Session]) -> list[dict[str, Any]]:
    """Return sessions with their counts: one statement for all of them."""
    sessions = list(rows)
    counts = session_loads(using, [row.pk for row in sessions])
    return [
        {
            **_columns(row, SESSION),
            "inside": counts[row.pk].inside if row.pk in counts else 0,
            "waiting": counts[row.pk].line if row.pk in counts else 0,
        }
        for row in sessions
    ]


def monitor_details(rows: Iterable[ConcurrentJobMonitor]) -> list[dict[str, Any]]:
    """Return monitors with their progress: at most four statements for all of them."""
    monitors = list(rows)
    progress = progress_of(monitors)
    return [
        {
            **_columns(row, MONITOR),
            "callback_job": row.anchor_id,
            **_columns(progress[row.pk], PROGRESS),
        }
        for row in monitors
    ]


def schedule_details(rows: Iterable[Schedule]) -> list[dict[str, Any]]:
    """Return schedules, without arguments."""
    return [_columns(row, SCHEDULE) for row in rows]
