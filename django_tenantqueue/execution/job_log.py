"""Log records about jobs: fields on each record, and one record for the end of a run."""

from __future__ import annotations

import logging
import traceback
from typing import Any

from ..conf import get_settings
from ..exceptions import Permanent, Postpone, Retry, TimeLimitExceeded
from ..states import State
from ..text import clean_text
from ..tracebacks import folded_text
from .current_job import RunningJob

logger = logging.getLogger("django_tenantqueue")

RETRIED = "retried"
"""The outcome of a run that failed and is repeated. The others are final states of jobs."""

_worker = ""


def name_worker(name: str) -> None:
    """Set the name of this worker process for all its log records."""
    global _worker
    _worker = name


def worker_name() -> str:
    """Return the name of this worker process; "" in other processes."""
    return _worker


def about(running: RunningJob, **more: Any) -> dict[str, Any]:
    """Return the `extra` of a record about a job that this process has claimed."""
    return {
        "job": running.id,
        "tenant": running.tenant,
        "queue": running.queue,
        "task": running.task,
        "attempt": running.attempt,
        "worker": _worker,
        **more,
    }


def about_id(job_id: int) -> dict[str, Any]:
    """Return the `extra` of a record about a job that this process knows only by its id."""
    return {"job": job_id, "worker": _worker}


def log_end(running: RunningJob, state: str) -> None:
    """Log that a run ended in `success` or `cancelled`; never raises."""
    try:
        seconds = running.age_seconds
        logger.info(
            "job %s (%s) ended in %s after %.3f s",
            running.id,
            running.task,
            state,
            seconds,
            extra=about(running, outcome=state, duration=round(seconds, 6)),
        )
    except BaseException:  # noqa: BLE001 - a filter of the project's may raise
        _say_broken(running)


def log_failure(
    running: RunningJob,
    error: BaseException,
    described: dict[str, Any],
    again_in: float | None,
) -> None:
    """Log how a run failed: a warning if it is repeated in `again_in` seconds, else an error.

    `described`: the error as it is stored. Never raises. Exceptions of this package, such as Retry,
    have no traceback here.
    """
    expected = isinstance(error, Permanent | Postpone | Retry | TimeLimitExceeded)
    then = "not retried" if again_in is None else f"retrying in {again_in:.1f} s"
    outcome = State.ERROR.value if again_in is None else RETRIED
    try:
        logger.log(
            logging.ERROR if again_in is None else logging.WARNING,
            "job %s (%s) failed in attempt %s of %s, %s: %s(%r)",
            running.id,
            running.task,
            running.attempt,
            running.max_attempts,
            then,
            described["class"],
            described["message"],
            exc_info=None if expected else error,
            extra=about(running, outcome=outcome, duration=round(running.age_seconds, 6)),
        )
    except BaseException:  # noqa: BLE001 - a filter of the project's may raise
        _say_broken(running)


def _say_broken(running: RunningJob) -> None:
    """Report to standard error that logging failed."""
    if logging.lastResort is not None:
        text = f"logging the end of job {running.id} ({running.task}) failed"
        logging.lastResort.handle(logging.makeLogRecord({"msg": text, "levelno": logging.ERROR}))


def fold_frames(record: logging.LogRecord) -> bool:
    """Fold the worker's own frames in a traceback that is logged, and cut what is too long.

    A filter of the logger. Formatters take the text that is noted here. `exc_info` keeps all, for
    those who read it.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is not None and not record.exc_text:
        try:
            whole = "".join(traceback.format_exception(error)).rstrip("\n")
            record.exc_text = folded_text(clean_text(whole, get_settings().max_traceback_chars))
        except BaseException:  # noqa: BLE001 - the error is an object of users' code
            record.exc_info, record.exc_text = None, "(the traceback cannot be shown)"
    return True
