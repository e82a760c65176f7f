"""The verbs of control for jobs, and why jobs are skipped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from ..calls.options import check_priority
from ..models import Job, TenantQueue
from ..states import FINAL, WAITING, State
from . import control
from .monitor_control import find_cancelled
from .result import Result
from .tuning import check_columns

READ = ("id", "state", "held_by", "monitor_id", "queue_id")
"""Columns that decide why a job is skipped."""
TUNABLE = ("priority", "run_at")
"""Columns of a job that operators change."""
LOCKED = "its row is locked by another transaction: try again"
NO_JOB = "there is no such job"
Ids = Sequence[int]


def _jobs(using: str, ids: Collection[int]) -> dict[int, Job]:
    return Job.objects.using(using).only(*READ).find_many(ids) if ids else {}


def _result(
    using: str,
    ids: Ids,
    changed: Collection[int],
    why: Callable[[Job], str],
    *,
    requested: Collection[int] = (),
) -> Result:
    """Return the result of a call. `why`: the reason why a job was refused; "": it is unchanged."""
    left = set(ids).difference(changed, requested)
    found = _jobs(using, left)
    reasons = {pk: why(found[pk]) if pk in found else NO_JOB for pk in left}
    refused = {pk: reason for pk, reason in reasons.items() if reason}
    return Result.of(ids, changed, requested=requested, refused=refused)


def cancel_jobs(ids: Ids, *, using: str) -> Result:
    """Cancel jobs."""
    cancelled, asked = control.cancel(ids, using=using)

    def why(job: Job) -> str:
        if job.state in FINAL:
            return ""
        if job.monitor_id is not None and job.held_by in ("details", "session"):
            return "it waits for the details of its monitor: cancel the monitor"
        return LOCKED

    return _result(using, ids, cancelled, why, requested=asked)


def retry_jobs(ids: Ids, *, using: str) -> Result:
    """Retry jobs that ended in error or were cancelled."""
    retried = control.retry(ids, using=using)
    left = set(ids).difference(retried)
    removed = set(control.find_without_arguments(left, using=using)) if left else set()
    stopped = set(find_cancelled(left, using=using)) if left else set()

    def why(job: Job) -> str:
        if job.pk in removed:
            return "its arguments were removed by a retention rule"
        if job.pk in stopped:
            return "its monitor was cancelled: start another monitor"
        if job.state == State.SUCCESS:
            return "it has succeeded: enqueue_again() enqueues a new one"
        return LOCKED if job.state in FINAL else ""

    return _result(using, ids, retried, why)


def run_jobs_now(ids: Ids, *, using: str) -> Result:
    """Make jobs ready that wait for their time."""

    def why(job: Job) -> str:
        if job.state == State.HELD:
            return f"it does not wait for its time, but is held by: {job.held_by}"
        return LOCKED if job.state == State.SCHEDULED else ""

    return _result(using, ids, control.run_now(ids, using=using), why)


def delete_jobs(ids: Ids, *, using: str) -> Result:
    """Delete finished jobs from the history."""

    def why(job: Job) -> str:
        if job.state not in FINAL:
            return "it has not ended: cancel it first"
        return LOCKED if job.monitor_id is None else "it belongs to a monitor"

    return _result(using, ids, control.delete_finished(ids, using=using), why)


def tune_jobs(ids: Ids, *, using: str, **columns: Any) -> Result:
    """Change the priority or the time of waiting jobs."""
    check_columns(columns, TUNABLE)
    changed: set[int] = set()
    with transaction.atomic(using=using):
        if "priority" in columns:
            priority = check_priority("priority", columns["priority"])
            same = Job.objects.using(using).unfinished().filter(pk__in=ids, priority=priority)
            already = set(same.values_list("pk", flat=True))
            changed.update(control.change_priority(ids, priority, using=using))
            changed -= already
        if "run_at" in columns:
            run_at: datetime | timedelta | float = columns["run_at"]
            changed.update(control.change_run_at(ids, run_at, using=using))
    return _result(using, ids, changed, lambda job: "")


def move_jobs(ids: Ids, *, using: str, queue: str, tenant: str | None) -> Result:
    """Move waiting jobs to a queue of a tenant, or each to that of its own tenant (None)."""
    waiting = {pk: job for pk, job in _jobs(using, ids).items() if job.state in WAITING}
    queue_ids = {job.queue_id for job in waiting.values()}
    queues = TenantQueue.objects.using(using).in_bulk(queue_ids)
    of_tenant: defaultdict[str, list[int]] = defaultdict(list)
    there = set()
    for pk, job in waiting.items():
        own = queues.get(job.queue_id)
        goal = tenant if tenant is not None else own.tenant if own else ""
        if own is not None and (own.tenant, own.name) == (goal, queue):
            there.add(pk)
        else:
            of_tenant[goal].append(pk)
    changed: list[int] = []
    with transaction.atomic(using=using):
        for goal, chosen in sorted(of_tenant.items()):
            changed += control.change_queue(chosen, tenant=goal, queue=queue, using=using)

    def why(job: Job) -> str:
        is_bound = job.state in WAITING and job.pk not in there
        return "it has a session, user limit, key or monitor of its tenant" if is_bound else ""

    return _result(using, ids, changed, why)
