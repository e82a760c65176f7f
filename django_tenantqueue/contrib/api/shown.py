"""Jobs, queues and other rows as clients see them, without secret and internal values."""

from __future__ import annotations

import json
from typing import Any

from ninja import Schema

from ...calls.arguments import MARK, read_float
from ...conf import get_settings
from ...models import ConcurrentJobMonitor, Job, Session, TenantQueue
from ...operations.session_control import session_loads
from ...status.job_status import describe_job, job_progress
from ...status.masking import mask_of_job, masked
from ...status.monitor_progress import progress_of
from ...status.open_links import error_message
from ...status.queue_loads import loads
from ...stored_error import entries_of
from . import schemas

HEAVY = ("args", "context", "result_data", "errors", "stats")
"""Columns that lists and streams do not read: they may be large."""
PROGRESS = (
    *("status", "total", "done", "failed", "cancelled", "running", "waiting", "percent"),
    "ends_at",
)


def shown(schema: type[Schema], row: Any, **own: Any) -> dict[str, Any]:
    """Return the members of a schema: from `own`, else from the row."""
    return {name: own[name] if name in own else getattr(row, name) for name in schema.model_fields}


def job_summary(job: Job) -> dict[str, Any]:
    """Return a job in a list. Its queue must be loaded."""
    return shown(
        schemas.JobSummary,
        job,
        queue=job.queue.name,
        progress=job_progress(job),
        labels=job.labels or [],
    )


def job_details(job: Job) -> dict[str, Any]:
    """Return a whole job: masked arguments, no tracebacks."""
    call = mask_of_job(job).call(job.args)
    if MARK in (text := json.dumps(call)):
        call = json.loads(text, object_hook=read_float)
    args, kwargs = (call.get("args"), call.get("kwargs")) if isinstance(call, dict) else (call, {})
    status = describe_job(job)
    return {
        **job_summary(job),
        "args": args or [],
        "kwargs": kwargs or {},
        **{name: status[name] for name in ("result", "result_missing")},
        "error": error_message(job),
        "errors": [_error(entry) for entry in entries_of(job.errors)],
        "stats": masked(job.stats),
    }


def _error(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "at": entry.get("at"),
        "attempt": entry.get("attempt"),
        "error_class": entry.get("class"),
        "message": entry.get("message"),
    }


def queue_details(queues: list[TenantQueue]) -> list[dict[str, Any]]:
    """Return queues with their counts: one statement for all of them."""
    counts = loads(get_settings().database, [row.pk for row in queues])
    return [
        shown(
            schemas.QueueDetails,
            row,
            running=counts[row.pk].running,
            waiting=counts[row.pk].waiting,
        )
        for row in queues
    ]


def session_details(sessions: list[Session]) -> list[dict[str, Any]]:
    """Return sessions with their counts: one statement for all of them."""
    counts = session_loads(get_settings().database, [row.pk for row in sessions])
    return [
        shown(
            schemas.SessionDetails,
            row,
            inside=counts[row.pk].inside if row.pk in counts else 0,
            waiting=counts[row.pk].line if row.pk in counts else 0,
        )
        for row in sessions
    ]


def monitor_details(monitors: list[ConcurrentJobMonitor]) -> list[dict[str, Any]]:
    """Return monitors with their progress: at most four statements for all of them."""
    progress = progress_of(monitors)
    return [
        shown(
            schemas.MonitorDetails,
            row,
            callback_job=row.anchor_id,
            **{name: getattr(progress[row.pk], name) for name in PROGRESS},
        )
        for row in monitors
    ]
