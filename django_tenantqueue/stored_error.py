"""The form in which an error is kept with a job: an entry of `Job.errors`, and `Job.last_error`."""

from __future__ import annotations

import traceback
from typing import Any

from django.utils import timezone

from .conf import get_settings
from .exceptions import TenantQueueError
from .text import clean_text

WORKER_DIED = "django_tenantqueue.exceptions.WorkerDied"
"""The `class` of the error when the worker process died during the run."""
HARD_TIME_LIMIT_EXCEEDED = "django_tenantqueue.exceptions.HardTimeLimitExceeded"
"""The `class` when the process was killed because a run exceeded its hard time limit."""
MEMORY_LIMIT_EXCEEDED = "django_tenantqueue.exceptions.MemoryLimitExceeded"
"""The `class` when it was killed for its memory, in the jobs that may be the reason."""


def entries_of(errors: Any) -> list[dict[str, Any]]:
    """Return the entries of `Job.errors`, without what raw SQL has put there in another shape."""
    found = errors if isinstance(errors, list) else []
    return [error for error in found if isinstance(error, dict)]


def stored_error(
    kind: type[BaseException] | str,
    message: str,
    *,
    attempt: int | None = 0,
    trace: str = "",
    seconds: float | None = None,
    answer: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return an error of this class, or name of a class: at, attempt, class, message, traceback.

    `attempt` is 0 for what happened to a job that did not run. `seconds` is how long the attempt
    ran until then, and `answer` what an endpoint said: they are left out when they are not known.
    """
    ran = {} if seconds is None else {"seconds": round(seconds, 6)}
    said = {} if answer is None else {"answer": answer}
    return {
        "at": timezone.now().isoformat(),
        "attempt": attempt,
        "class": kind if isinstance(kind, str) else class_name(kind),
        "message": message,
        "traceback": trace,
        **ran,
        **said,
    }


def describe_error(
    error: BaseException, attempt: int, seconds: float | None = None
) -> dict[str, Any]:
    """Return an exception in that form.

    It never fails: what cannot be read from the error is left out.
    """
    name = class_name(type(error))
    try:
        message = clean_text(str(error), get_settings().max_message_chars)
    except BaseException:  # noqa: BLE001 - a broken __str__ must not hide the error
        message = f"<{name.rpartition('.')[2]} whose message cannot be shown>"
    try:
        trace = clean_text(
            "".join(traceback.format_exception(error)), get_settings().max_traceback_chars
        )
    except BaseException:  # noqa: BLE001 - the same
        trace = ""
    answer = error.answer if isinstance(error, TenantQueueError) else None
    return stored_error(name, message, attempt=attempt, trace=trace, seconds=seconds, answer=answer)


def class_name(kind: type[BaseException]) -> str:
    """Return the dotted name of a class, without `builtins`; never fails."""
    try:
        return clean_text(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."), 500)
    except BaseException:  # noqa: BLE001 - a metaclass may raise
        return "an error whose class cannot be named"
