"""Jobs of one queue as clients of Fireworq see them: by page, or by id."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Func, TextField
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual
from django.utils.dateparse import parse_duration

from ...batch_sizes import BATCH_BYTES, SMALL_BATCH
from ...calls.arguments import read_float
from ...models import Job
from ...queries.base import array
from ...queries.lists import NEWEST, fetch_in_order, read_in_order
from ...states import ACTIVE, EARLIEST, LATEST, State
from ...status.masking import masked
from ..http import http_job
from ..http.settings import LONGEST_REQUEST

EVERYTHING = datetime(2000, 1, 1, tzinfo=UTC)
"""Before the first job."""
LISTS: dict[str, tuple[Collection[State], str | None]] = {
    "waiting": ([State.READY], None),
    "deferred": ([State.SCHEDULED], "run_at"),
    "grabbed": (ACTIVE, "queued_at"),
    "failed": ([State.ERROR], "finished_at"),
    "created": ([State.ERROR], None),
}
"""The states of the jobs, and the time by which they are ordered. None: by their ids alone."""
_COLUMNS = (
    *("id", "task", "source_method", Cast("args", TextField()), "state", "created_at", "run_at"),
    *("queued_at", "finished_at", "attempt", "max_attempts"),
)
_LAST_ERROR = ("errors__-1__class", "errors__-1__message", "errors__-1__answer")
Place = tuple[datetime, int]
"""The time of a job and its id."""


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as clients of Fireworq see it. `args` is JSON text.

    The last three are of the last error of a job that ended in error.
    """

    id: int
    task: str
    source_method: str
    args: str
    state: str
    created_at: datetime
    run_at: datetime
    queued_at: datetime | None
    finished_at: datetime | None
    attempt: int
    max_attempts: int
    error_class: Any = None
    message: Any = None
    answer: Any = None


def read_page(
    using: str, queue_id: int, what: str, *, up: bool = False, limit: int, cursor: str = ""
) -> tuple[list[ListedJob], str]:
    """Return jobs of a queue behind a cursor, and the cursor of the next page; "" at the end.

    `what`: one of LISTS. `up`: the lowest time or id first. An invalid cursor is the beginning. A
    page of large payloads ends before its limit.
    """
    place = read_cursor(cursor) or ((EARLIEST, 0) if up else (LATEST, NEWEST))
    jobs: list[ListedJob] = []
    size = 0
    while size < BATCH_BYTES and len(jobs) <= limit:
        left = limit + 1 - len(jobs)
        most = left if left <= SMALL_BATCH + 1 else SMALL_BATCH  # a usual page is one statement
        found = _jobs_behind(using, queue_id, what, place, up=up, most=most)
        jobs += found
        if len(found) < most:
            return jobs, ""
        size += sum(len(job.args) for job in found)
        place = _place(jobs[-1], what)
    jobs = jobs[:limit]
    return jobs, make_cursor(*_place(jobs[-1], what)) if jobs else ""


def _place(job: ListedJob, what: str) -> Place:
    time = LISTS[what][1]
    return EVERYTHING if time is None else getattr(job, time), job.id


class _Row(Func):
    """A row of columns or values: `(a, b) < (1, 2)`."""

    template = "(%(expressions)s)"
    output_field = BooleanField()


def _jobs_behind(
    using: str, queue_id: int, what: str, place: Place, *, up: bool, most: int
) -> list[ListedJob]:
    """Return the next jobs of a list behind a place in it."""
    if what == "waiting":
        params = {"queues": array([queue_id]), "id": place[1], "most": most}
        name = "list_first_ready_of_queue" if up else "list_ready_of_queue"
        return [ListedJob(*row) for row in fetch_in_order(using, name, params)]
    states, time = LISTS[what]
    keys = {"queue_id": queue_id, **({time: place[0]} if time else {}), "id": place[1]}
    columns, values = list(keys), list(keys.values())
    is_behind, is_at = (GreaterThan, GreaterThanOrEqual) if up else (LessThan, LessThanOrEqual)
    conditions = {
        "final": State.ERROR in states,
        "state__in": sorted(states),
        "queue_id__lte" if up else "queue_id__gte": queue_id,
    }
    if what == "failed":
        conditions["finished_at__lte"] = place[0]  # leaves out months
    # Rows are compared, which says the same as equality of the queue: only the index of the list
    # has the order that is then asked for.
    rows = Job.objects.using(using).filter(
        is_behind(_Row(*columns), _Row(*values)),
        is_at(_Row(*columns[:-1]), _Row(*values[:-1])),  # limits an index without the id
        **conditions,
    )
    rows = rows.order_by(*columns if up else (f"-{name}" for name in columns))
    with read_in_order(using):
        return [ListedJob(*row) for row in rows.values_list(*_shown(states))[:most]]


def _shown(states: Collection[State]) -> tuple[Any, ...]:
    return (*_COLUMNS, *_LAST_ERROR) if State.ERROR in states else _COLUMNS


def find_of_queue(using: str, queue_id: int, job_id: int, *, failed: bool) -> ListedJob | None:
    """Return a job of a queue that is unfinished, or ended in error if `failed`; else None."""
    rows = Job.objects.using(using).filter(pk=job_id, queue_id=queue_id, final=failed)
    if failed:
        rows = rows.filter(state=State.ERROR)
    row = rows.order_by().values_list(*_shown([State.ERROR] if failed else [])).first()
    return None if row is None else ListedJob(*row)


def make_cursor(at: datetime, job_id: int) -> str:
    """Return the cursor behind a job."""
    micros = (at - EVERYTHING) // timedelta(microseconds=1)
    return base64.b64encode(f"{micros},{job_id}".encode()).decode()


def read_cursor(text: str) -> Place | None:
    """Return the time and the id of a cursor; None if it is not valid."""
    try:
        micros, _, job_id = base64.b64decode(text[:100], validate=True).decode().partition(",")
        at, number = EVERYTHING + timedelta(microseconds=int(micros)), int(job_id)
    except (ValueError, OverflowError):
        return None
    return (at, number) if EARLIEST <= at < LATEST and 0 <= number <= NEWEST else None


def describe_job(job: ListedJob) -> dict[str, Any]:
    """Return an unfinished job."""
    call = _call_of(job)
    is_active = job.state in ("queued", "running")
    timeout = _seconds_of(call.get("request_timeout"))
    return {
        **_named(job, call),
        "status": "grabbed" if is_active else "claimed",
        "created_at": time_text(job.created_at),
        "next_try": time_text(job.run_at),
        "timeout": 0 if timeout >= LONGEST_REQUEST else timeout,
        "fail_count": max(0, job.attempt - is_active),
        "max_retries": job.max_attempts - 1,
        "retry_delay": _seconds_of(call.get("retry_delay")),
    }


def describe_failure(job: ListedJob) -> dict[str, Any]:
    """Return a job that ended in error."""
    assert job.finished_at is not None, "it has ended"
    return {
        **_named(job, _call_of(job)),
        "job_id": job.id,
        "result": _result(job),
        "fail_count": job.attempt,
        "failed_at": time_text(job.finished_at),
        "created_at": time_text(job.created_at),
    }


def _call_of(job: ListedJob) -> Mapping[str, Any]:
    """Return the arguments of an HTTP job by name; {} for another job, or if removed."""
    is_ours = job.source_method == http_job.name
    stored = json.loads(job.args, object_hook=read_float) if is_ours else None
    if not isinstance(stored, dict):
        return {}
    args, kwargs = stored.get("args"), stored.get("kwargs")
    named = dict(zip(("url", "payload"), args if isinstance(args, list) else (), strict=False))
    return {**named, **(kwargs if isinstance(kwargs, dict) else {})}


def _seconds_of(stored: Any) -> float:
    """Return an argument that is stored as seconds or a timedelta, in seconds; else 0."""
    if isinstance(stored, dict):
        length = parse_duration(str(stored.get("value")))
        return 0 if length is None else length.total_seconds()
    return stored if isinstance(stored, int | float) else 0


def _named(job: ListedJob, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that all jobs have. An empty payload is left out."""
    payload = masked(call.get("payload"))
    rest = {} if payload in (None, "") else {"payload": payload}
    return {"id": job.id, "category": job.task, "url": str(call.get("url") or ""), **rest}


def _result(job: ListedJob) -> dict[str, Any]:
    answer = job.answer if isinstance(job.answer, dict) else None
    if answer is None:
        status = "internal-failure"
    else:
        rejected = str(job.error_class).endswith(".HttpJobRejected")
        status = "permanent-failure" if rejected else "failure"
    return {
        "status": status,
        "code": answer.get("status", 0) if answer else 0,
        "message": (answer.get("message") if answer else "") or str(job.message or ""),
    }


def time_text(moment: datetime) -> str:
    """Return a time in the form of RFC 3339."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
