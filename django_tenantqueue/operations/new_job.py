"""The row of a job that is enqueued: from its options, the settings and the caller's context."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from ..calls.context import capture_context, check_coroutine
from ..calls.options import Options, check_labels
from ..calls.serial import Serial
from ..calls.sources import Source
from ..calls.unique_key import make_key
from ..conf import get_settings
from ..gate_keys import JobGates, gate_key
from ..queries import enqueue as queries
from ..states import Priority
from .queues import Target, lane_of
from .unique import KeyedCall

NO_COLUMNS = ("args", "unseen", "has_room", "exclusive_keys")
"""Of a row: what its JSON object does not have."""
TEXTS = ("context", "follow_ups")
"""Columns that a row has as JSON texts, besides its arguments."""


def _as_datetime(moment: datetime | timedelta | None) -> datetime | None:
    return timezone.now() + moment if isinstance(moment, timedelta) else moment


def new_job(source: Source, options: Options, queue_id: int, args: str) -> queries.NewJob:
    """Return what insert_job.sql takes. Raises NotAllowed: see check_coroutine()."""
    if source.is_async:
        check_coroutine(source.name)
    settings = get_settings()
    priority = Priority.DEFAULT if options.priority is None else options.priority
    run_at: datetime | None = None
    delay = 0.0
    if isinstance(options.run_at, timedelta):
        delay = options.run_at.total_seconds()
    else:
        run_at = options.run_at
    return {
        "queue_id": queue_id,
        "lane": lane_of(priority),
        "priority": priority,
        "is_async": source.is_async,
        "run_at": run_at,
        "delay_seconds": delay,
        "expires_at": _as_datetime(options.expires_at),
        "max_attempts": options.max_attempts or settings.default_max_attempts,
        "timeout_seconds": options.timeout or settings.default_timeout,
        "hard_timeout_seconds": options.hard_timeout,
        "task": source.name,
        "source_type": source.source_type,
        "source_id": source.source_id,
        "source_method": source.source_method,
        "args": args,
        "labels": None if options.labels is None else check_labels(options.labels),
        "created_by": options.created_by,
        "context": capture_context(),
        "unseen": False,
        "has_room": False,
    }


def gates_of(options: Options, tenant: str, key: str) -> JobGates:
    """Return the gates that a job with these options and this unique key passes."""
    session, halts = options.session, False
    if isinstance(session, Serial):
        halts = session.on_failure == "halt"
        session = str(session.key)
    return JobGates(
        session=None if session is None else gate_key(tenant, session),
        limit_user=None if options.limit_user is None else gate_key(tenant, options.limit_user),
        exclusive=key if options.unique is not None and options.unique.excludes else None,
        halts=halts,
    )


def gated_row(
    new: queries.NewJob,
    options: Options,
    gates: JobGates,
    *,
    previous_id: int | None = None,
    follow_ups: str | None = None,
) -> queries.GatedJob:
    """Return what insert_jobs.sql takes. `previous_id`: the job that it follows."""
    session = options.session
    return {
        **new,
        "held_by": gates.first(),
        "monitor_id": None if gates.monitor is None else int(gates.monitor),
        "session_key": gates.session,
        "session_skip": isinstance(session, Serial) and session.on_wait == "skip",
        "session_halt": gates.halts,
        "limit_user": gates.limit_user,
        "exclusive_keys": None,
        "unique_mode": None if options.unique is None else options.unique.mode,
        "previous_id": previous_id,
        "follow_ups": follow_ups,
    }


def json_head(row: Mapping[str, Any], **changes: object) -> str:
    """Return a row as the text of a JSON object, open for its arguments.

    Details and follow-ups are such objects. Columns that are empty or False are left out.
    """
    delay = max(0.0, row["delay_seconds"]) or None
    columns = {**row, "delay_seconds": delay, **changes}
    texts = {name: columns.pop(name, None) for name in TEXTS}
    stored = {
        name: value
        for name, value in columns.items()
        if value is not None and value is not False and name not in NO_COLUMNS
    }
    parts = [json.dumps(stored, default=datetime.isoformat)[:-1]]
    parts += [f'"{name}":{text}' for name, text in texts.items() if text is not None]
    return ",".join([*parts, ""])


def keyed_call(
    source: Source,
    options: Options,
    target: Target,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    text: str,
) -> KeyedCall:
    """Return a call with its unique key; without one, the key is empty."""
    if options.unique is None:
        return KeyedCall(text, "")
    return KeyedCall(text, make_key(options.unique, source, target.tenant, args, kwargs, text))
