"""What clients of Fireworq read: queues, pages of jobs, failures and numbers, in its words."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ...batches import BATCH_BYTES, SMALL_BATCH
from ...calls.arguments import read_float
from ...models import TenantQueue, Worker
from ...queries.control import count_queues
from ...queries.figures import Counts, sum_of_queues
from ...queries.lists import NEWEST
from ...states import EARLIEST, LATEST
from ...status.amounts import COUNTED_TO, READ
from ...status.masking import masked
from ...status.queue_loads import loads
from ...status.takers import Takers, going_on, read_takers
from ..http.settings import LONGEST_REQUEST
from . import queries
from .models import FireworqQueue
from .queries import ListedJob, Statement

HTTP_JOB = "django_tenantqueue.http.http_job"
"""The task of jobs that have a URL. Other jobs of a queue are listed without one."""
NO_LIMIT = 1_000_000
"""What is said of a queue without a limit: the most slots that a queue can have."""
THROTTLED_INTERVAL, USUAL_INTERVAL = 100, 200
"""Milliseconds that Fireworq says of a queue whose definition names no polling interval."""
EVERYTHING = datetime(2000, 1, 1, tzinfo=UTC)
"""Before the first figure."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order of a list. `key`: the time by which it is ordered; None: by the id alone."""

    statement: Statement
    key: Callable[[ListedJob], datetime | None] | None
    start: tuple[datetime, int]

    def place(self, job: ListedJob) -> tuple[datetime, int]:
        """Return the time and the id of a job in this order."""
        at = None if self.key is None else self.key(job)
        return EVERYTHING if at is None else at, job.id


_UP, _DOWN = (EARLIEST, 0), (LATEST, NEWEST)
LISTS: dict[tuple[str, str], Order] = {
    ("waiting", "desc"): Order("list_ready_of_queue", None, _DOWN),
    ("waiting", "asc"): Order("list_first_ready_of_queue", None, _UP),
    ("deferred", "desc"): Order("list_deferred_of_queue", lambda job: job.run_at, _DOWN),
    ("deferred", "asc"): Order("list_first_deferred_of_queue", lambda job: job.run_at, _UP),
    ("grabbed", "desc"): Order("list_claimed_of_queue", lambda job: job.queued_at, _DOWN),
    ("grabbed", "asc"): Order("list_first_claimed_of_queue", lambda job: job.queued_at, _UP),
    ("failed", "failed"): Order("list_failed_of_queue", lambda job: job.finished_at, _DOWN),
    ("failed", "created"): Order("list_failed_by_push", None, _DOWN),
}


@dataclass(frozen=True, slots=True)
class Page:
    """Some jobs of a list, and where the next ones begin; "": there are no more."""

    jobs: Sequence[ListedJob]
    next_cursor: str


def read_page(
    using: str, queue_id: int, what: str, order: str, *, limit: int, cursor: str = ""
) -> Page:
    """Return jobs of a queue behind a cursor. A cursor that is none is the beginning.

    A page of large payloads ends before its limit.
    """
    chosen = LISTS[what, order]
    at, job_id = read_cursor(cursor) or chosen.start
    jobs: list[ListedJob] = []
    size = 0
    while size < BATCH_BYTES and len(jobs) <= limit:
        most = min(SMALL_BATCH, limit + 1 - len(jobs))
        found = queries.list_of_queue(
            using, chosen.statement, queue_id, at=at, job_id=job_id, most=most
        )
        jobs += found
        if len(found) < most:
            return Page(jobs, "")
        size += sum(len(job.args) for job in found)
        at, job_id = chosen.place(jobs[-1])
    jobs = jobs[:limit]
    return Page(jobs, make_cursor(*chosen.place(jobs[-1])) if jobs else "")


def make_cursor(at: datetime, job_id: int) -> str:
    """Return the cursor behind a job."""
    micros = (at - EVERYTHING) // timedelta(microseconds=1)
    return base64.b64encode(f"{micros},{job_id}".encode()).decode()


def read_cursor(text: str) -> tuple[datetime, int] | None:
    """Return the time and the id that a cursor holds; None: it is no cursor."""
    try:
        micros, _, job_id = base64.b64decode(text[:100], validate=True).decode().partition(",")
        at, number = EVERYTHING + timedelta(microseconds=int(micros)), int(job_id)
    except (ValueError, OverflowError):
        return None
    return (at, number) if EARLIEST <= at < LATEST and 0 <= number <= NEWEST else None


# queues


def find_queue(using: str, tenant: str, name: str) -> TenantQueue | None:
    """Return a queue of a tenant; None when there is none, or it was deleted (retired)."""
    rows = TenantQueue.objects.using(using)
    return rows.filter(tenant=tenant, name=name, retired=False).first()


def list_queues(using: str, tenant: str) -> list[TenantQueue]:
    """Return the queues of a tenant, by name."""
    rows = TenantQueue.objects.using(using).filter(tenant=tenant, retired=False)
    return list(rows.order_by("name"))


def describe_queues(using: str, queues: Sequence[TenantQueue]) -> list[dict[str, Any]]:
    """Return the definitions of queues."""
    rows = FireworqQueue.objects.using(using).filter(pk__in=[queue.pk for queue in queues])
    intervals = dict(rows.values_list("pk", "polling_interval"))
    return [_definition(queue, intervals.get(queue.pk)) for queue in queues]


def _definition(queue: TenantQueue, interval: int | None) -> dict[str, Any]:
    throttle = {}
    if queue.max_per_second is not None:
        interval = THROTTLED_INTERVAL
        throttle = {
            "max_dispatches_per_second": queue.max_per_second,
            "max_burst_size": queue.burst_size,
        }
    return {
        "name": queue.name,
        "polling_interval": interval or USUAL_INTERVAL,
        "max_workers": slots_of(queue),
        **throttle,
    }


def slots_of(queue: TenantQueue) -> int:
    """Return what `max_workers` of a queue is."""
    return NO_LIMIT if queue.num_slots is None else queue.num_slots


# numbers


def read_stats(using: str, queues: Sequence[TenantQueue]) -> dict[str, dict[str, int]]:
    """Return the numbers of queues by their names."""
    ids = [queue.pk for queue in queues]
    now = datetime.now(UTC)
    since = now.replace(second=0, microsecond=0) - timedelta(minutes=1)
    seconds = (now - since).total_seconds()
    totals = sum_of_queues(using, ids, since=EVERYTHING)
    lately = sum_of_queues(using, ids, since=since)
    pushes = {row.pk: row for row in FireworqQueue.objects.using(using).filter(pk__in=ids)}
    found = loads(using, ids)
    busy = [pk for pk, load in found.items() if load.running >= COUNTED_TO]
    counted = count_queues(using, busy, running=READ * 5, waiting=0) if busy else ()
    running = {load.queue_id: load.running for load in (*found.values(), *counted)}
    takers = read_takers(using)
    return {
        queue.name: {
            **_totals(totals.get(queue.pk, Counts()), pushes.get(queue.pk)),
            "pushes_per_second": round(_pushes_since(since, pushes.get(queue.pk)) / seconds),
            "pops_per_second": round(lately.get(queue.pk, Counts()).started / seconds),
            "outstanding_jobs": found[queue.pk].waiting,
            "total_workers": slots_of(queue),
            "idle_workers": max(0, slots_of(queue) - running[queue.pk]),
            "active_nodes": int(takers.serve(queue)),
        }
        for queue in queues
    }


def _totals(counts: Counts, pushed: FireworqQueue | None) -> dict[str, int]:
    return {
        "total_pushes": 0 if pushed is None else pushed.pushes,
        "total_pops": counts.started,
        "total_successes": counts.succeeded,
        "total_failures": counts.failures,
        "total_permanent_failures": counts.failed,
        "total_completes": counts.succeeded + counts.failed,
        "total_elapsed": round(1000 * (counts.wait_seconds + counts.run_seconds)),
    }


def _pushes_since(minute: datetime, pushed: FireworqQueue | None) -> int:
    """Return the pushes from a minute on, which is the last whole one."""
    if pushed is None or pushed.minute is None or pushed.minute < minute:
        return 0
    return pushed.pushes_in_minute + (pushed.pushes_before if pushed.minute > minute else 0)


def find_node(using: str, queue: TenantQueue) -> Worker | None:
    """Return a worker process that takes jobs of a queue; None: there is none."""
    workers = going_on(using).order_by("pk")
    return next((worker for worker in workers if Takers.of([worker]).serve(queue)), None)


# jobs


def describe_job(job: ListedJob) -> dict[str, Any]:
    """Return an unfinished job."""
    call = _call_of(job)
    is_active = job.state in ("queued", "running")
    timeout = call.get("timeout") or 0
    return {
        **_named(job, call),
        "status": "grabbed" if is_active else "claimed",
        "created_at": time_text(job.created_at),
        "next_try": time_text(job.run_at),
        "timeout": 0 if timeout >= LONGEST_REQUEST else timeout,
        "fail_count": max(0, job.attempt - is_active),
        "max_retries": job.max_attempts - 1,
        "retry_delay": call.get("retry_delay") or 0,
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
    """Return the arguments of an HTTP job by name; nothing of another one, or when removed."""
    is_ours = job.source_method == HTTP_JOB
    stored = json.loads(job.args, object_hook=read_float) if is_ours else None
    if not isinstance(stored, dict):
        return {}
    args, kwargs = stored.get("args"), stored.get("kwargs")
    named = dict(zip(("url", "payload"), args if isinstance(args, list) else (), strict=False))
    return {**named, **(kwargs if isinstance(kwargs, dict) else {})}


def _named(job: ListedJob, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what unfinished and failed jobs have in common. An empty payload is left out."""
    payload = masked(call.get("payload"))
    rest = {} if payload in (None, "") else {"payload": payload}
    return {"id": job.id, "category": job.name, "url": str(call.get("url") or ""), **rest}


def _result(job: ListedJob) -> dict[str, Any]:
    kind, message, answer = json.loads(job.error)
    said = answer if isinstance(answer, dict) else None
    if said is None:
        status = "internal-failure"
    else:
        rejected = str(kind).endswith(".RequestRejected")
        status = "permanent-failure" if rejected else "failure"
    return {
        "status": status,
        "code": said.get("status", 0) if said else 0,
        "message": (said.get("message") if said else "") or str(message or ""),
    }


def time_text(moment: datetime) -> str:
    """Return a time in the form of RFC 3339."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
