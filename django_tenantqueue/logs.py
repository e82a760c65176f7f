"""For the setting LOGGING: a formatter that writes JSON, and a filter that adds a job's fields.

Nothing here needs Django's apps while it is imported: LOGGING is read before they are loaded.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.apps import apps

JOB_FIELDS = ("job", "tenant", "queue", "task", "attempt", "worker")
"""Attributes of the records about a job, and of all records that pass a JobFilter."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JobFilter(logging.Filter):
    """Adds the fields of the running job to each record, also to those of a task's own code.

    Add it to a handler. Records outside a job have "" for these fields, so that a format may use
    them. Existing attributes of a record are kept.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        said = vars(record)
        for name, value in _fields_of_current().items():
            said.setdefault(name, value)
        return True


def _fields_of_current() -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(JOB_FIELDS, "")
    if not apps.models_ready:
        return fields
    from .execution.current_job import running_or_none
    from .execution.job_log import about, worker_name

    running = running_or_none()
    return {**fields, "worker": worker_name()} if running is None else about(running)


class JSONFormatter(logging.Formatter):
    """Writes each record as one line of JSON.

    The keys are `time` (UTC, ISO 8601), `level`, `logger`, `message`, each attribute that the
    record got by `extra` or from a filter, and `traceback` and `stack` if there is one. `fields`:
    the extra attributes that are written; None: all. Values that are not JSON are written as text.
    """

    def __init__(self, *, fields: Iterable[str] | None = None) -> None:
        super().__init__()
        self._fields = None if fields is None else frozenset(fields)

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = {n: v for n, v in vars(record).items() if self._is_shown(n, v, entry)}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            entry["traceback"] = record.exc_text
        if record.stack_info:
            entry["stack"] = self.formatStack(record.stack_info)
        try:
            return json.dumps({**extra, **entry}, allow_nan=False, default=_as_text)
        except (TypeError, ValueError, RecursionError):  # keys, NaN, or a value within itself
            return json.dumps({**{n: _as_text(v) for n, v in extra.items()}, **entry})

    def _is_shown(self, name: str, value: Any, entry: dict[str, Any]) -> bool:
        if name in _STANDARD or name in entry:
            return False
        if value == "" and name in JOB_FIELDS:
            return False  # of no job, or a job of no tenant
        return self._fields is None or name in self._fields


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - an object of users' code
        return f"<{type(value).__qualname__} that cannot be shown>"
