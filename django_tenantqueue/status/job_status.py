"""The status of a job for clients."""

from __future__ import annotations

from typing import Any

from ..coroutines import twin
from ..models import Job
from ..states import State
from .masking import mask_of_job
from .open_links import public_error


def job_progress(job: Job) -> dict[str, Any]:
    """Return what a job has reported of its progress."""
    return {
        "done": job.progress_done,
        "total": job.progress_total,
        "percent": job.progress_percent,
        "message": job.progress_message,
    }


def describe_job(job: Job) -> dict[str, Any]:
    """Return the public status of a job: no arguments, no traceback, no internals.

    The result of a task with secret=True is None. Keys: id, name, state, final, attempt,
    max_attempts, progress (done, total, percent, message), result, result_missing, error,
    created_at, queued_at, started_at, finished_at.
    """
    result, missing = None, False
    if job.state == State.SUCCESS:
        try:
            result = job.result
            if result is not None and mask_of_job(job).whole:
                result = None  # the task is declared with secret=True
        except LookupError:
            missing = True
    return {
        "id": job.pk,
        "task": job.task,
        "state": job.state,
        "final": job.final,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "progress": job_progress(job),
        "result": result,
        "result_missing": missing,
        "error": public_error(job),
        "created_at": job.created_at,
        "queued_at": job.queued_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }


adescribe_job = twin(describe_job)
