"""Enqueues the jobs of due schedules.

A tick and the move to the next one are in one transaction. So each tick is fired once, also when
the leader dies.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connections, transaction
from django.db.models import F
from django.db.models.functions import Now

from ...batch_sizes import SMALL_BATCH
from ...calls.arguments import decode_args
from ...calls.given_options import merged
from ...calls.options import Options
from ...calls.sources import describe_named
from ...calls.tenant import use_tenant
from ...conf import get_settings
from ...databases import are_several, database_of_tenant
from ...execution.outcome import MOST_DOUBLINGS
from ...models import Job, TenantQueue
from ...operations.enqueue import enqueue
from ...queries.lists import read_in_order
from ...status.display_limits import MESSAGE
from ...text import clean_text
from .models import Schedule

logger = logging.getLogger("django_tenantqueue")

GRACE = timedelta(minutes=5)
"""A tick that is fired later than this is missed."""
RETRY = GRACE / 10
"""Pause after the first failure of a schedule. It doubles up to 32 minutes, or until the tick."""
WRITTEN = (
    *("tick_at", "next_at", "after_tenant", "last_at", "last_tick_at", "last_job_id"),
    *("lateness_seconds", "last_error", "last_error_at", "failures"),
)
"""Columns that firing a tick changes."""
Columns = dict[str, Any]
"""New values of some of them."""


def fire_schedules(using: str, now: datetime | None = None) -> int:
    """Enqueue the jobs of up to SMALL_BATCH due schedules; return how many schedules were due.

    Locks the schedules, and skips those that another session has locked: an operator edits them. A
    failed schedule stores its error, is retried, and does not stop the others. `now`: the
    database's clock if None.
    """
    with transaction.atomic(using=using):
        due = Schedule.objects.using(using).due(now)
        with read_in_order(using):
            rows = list(due.select_for_update(no_key=True, skip_locked=True)[:SMALL_BATCH])
        for row, columns in zip(rows, _fire_all(using, rows), strict=True):
            for name, value in columns.items():
                setattr(row, name, value)
        # they exist: an upsert sends each row once, where bulk_update() has a CASE for each value
        Schedule.objects.using(using).bulk_create(
            rows, update_conflicts=True, unique_fields=("id",), update_fields=WRITTEN
        )
    return len(rows)


def seconds_to_next_schedule(using: str) -> float | None:
    """Return the seconds until the next schedule is due; None: there is none."""
    planned = Schedule.objects.using(using).planned()
    left = planned.values_list(F("next_at") - Now(), flat=True).first()
    return None if left is None else float(left.total_seconds())


def _fire_all(using: str, rows: Sequence[Schedule]) -> list[Columns]:
    """Fire schedules together. If one fails, fire all again, each in its own savepoint.

    Together they need a third of the round trips, and one wake-up.
    """
    try:
        with transaction.atomic(using=using):
            return [_fire(using, row) for row in rows]
    except Exception:
        raw = connections[using].connection
        if raw is None or raw.closed:
            raise
    return [_fire_alone(using, row) for row in rows]


def _fire_alone(using: str, row: Schedule) -> Columns:
    try:
        with transaction.atomic(using=using):
            return _fire(using, row)
    except Exception as error:  # noqa: BLE001 - whatever the task's code and the database raise
        logger.warning("schedule %s (%s) failed, will retry: %s", row.pk, row, error)
        return {"next_at": _next_try(row), **_failure(row, _text(error))}


def _fire(using: str, row: Schedule) -> Columns:
    tick, following = _choose(row)
    if tick is None:
        return _passed(row, following)
    if row.tenant is None:
        return _fire_for_tenants(using, row, tick, following)
    return _fired(row, tick, following, enqueue_tick(using, row, tick))


def _choose(row: Schedule) -> tuple[datetime | None, datetime | None]:
    """Return the tick to enqueue a job for, if any, and the next one."""
    tick, recurrence = row.tick_at, row.recurrence
    assert tick is not None
    if row.after_tenant is not None:  # in the middle of it
        return tick, recurrence.next(tick)
    if row.overlap == Schedule.Overlap.SKIP and row.running_job_id is not None:
        return None, recurrence.next(max(tick, row.now))
    if row.catch_up == Schedule.CatchUp.ALL:
        return tick, recurrence.next(tick)
    latest = recurrence.latest(tick, row.now)
    jitter = timedelta(seconds=row.jitter_seconds)
    assert row.next_at is not None
    late = row.now - (row.next_at if latest == tick else latest + jitter)
    if row.catch_up == Schedule.CatchUp.ONCE or late <= GRACE:
        return latest, recurrence.next(latest)
    return None, recurrence.next(latest)


def enqueue_tick(using: str, row: Schedule, tick: datetime, tenant: str | None = None) -> Job:
    """Enqueue the job of a tick, in the caller's transaction. `tenant`: the row's if None.

    Raises what `.delay()` raises, and UnknownTask, NotAllowed, Permanent.
    """
    source, task = describe_named(row.task)
    text = json.dumps({"args": row.args, "kwargs": row.kwargs})
    args, kwargs = decode_args(text, {"scheduled_at": tick})
    source.check_call(tuple(args), kwargs)
    whose = (row.tenant or "") if tenant is None else tenant
    given = {"tenant": whose, "queue": row.queue or None, "priority": row.priority}
    options = Options() if task is None else task.options
    options = merged(options, {n: v for n, v in given.items() if v is not None})
    with use_tenant(whose):
        return enqueue(source, options, tuple(args), kwargs, task=task, context="")


def tenants_of_queue(using: str, row: Schedule, most: int) -> list[str]:
    """Return the next tenants that have the queue of a schedule, without a job of this tick."""
    name = row.queue
    if not name:
        _source, task = describe_named(row.task)
        name = (task.options.queue if task else None) or get_settings().default_queue
    queues = TenantQueue.objects.using(using).filter(name=name, retired=False)
    if row.after_tenant is not None:
        queues = queues.filter(tenant__gt=row.after_tenant)
    return list(queues.order_by("tenant").values_list("tenant", flat=True)[:most])


def _fire_for_tenants(
    using: str, row: Schedule, tick: datetime, following: datetime | None
) -> Columns:
    """Enqueue the jobs of the next tenants. A failure for one is stored, not retried."""
    tenants = tenants_of_queue(using, row, SMALL_BATCH)
    job, error = None, "" if row.after_tenant is None else row.last_error
    for tenant in tenants:
        if are_several() and database_of_tenant(tenant) != using:
            continue  # its new jobs are elsewhere, and the schedule there enqueues them
        try:
            with transaction.atomic(using=using):
                job = enqueue_tick(using, row, tick, tenant)
        except Exception as failure:  # noqa: BLE001 - see _fire_alone()
            error = _text(failure, f"tenant {tenant!r}: ")
            logger.warning("schedule %s failed for %s", row.pk, error)
    columns = _fired(row, tick, following, job)
    if error:
        columns |= _failure(row, error)
    if len(tenants) == SMALL_BATCH:
        columns |= {
            "tick_at": tick,
            "next_at": row.next_at,
            "after_tenant": tenants[-1],
            "lateness_seconds": row.lateness_seconds,
            "failures": row.failures,
        }
    return columns


def _passed(row: Schedule, following: datetime | None) -> Columns:
    """Return the columns of a schedule whose next tick is `following`."""
    return {"tick_at": following, "next_at": row.next_look(following), "after_tenant": None}


def _fired(row: Schedule, tick: datetime, following: datetime | None, job: Job | None) -> Columns:
    """Return the columns of a schedule that has run. `job`: None if no tenant got one."""
    planned = tick if row.failures or row.tick_at != tick else row.next_at
    assert planned is not None
    return {
        **_passed(row, following),
        "last_at": row.now,
        "last_tick_at": tick,
        "last_job_id": row.last_job_id if job is None else job.pk,
        "lateness_seconds": max(0.0, (row.now - planned).total_seconds()),
        "last_error": "",
        "last_error_at": None,
        "failures": 0,
    }


def _failure(row: Schedule, text: str) -> Columns:
    return {"last_error": text, "last_error_at": row.now, "failures": row.failures + 1}


def _next_try(row: Schedule) -> datetime:
    """Return when to retry the tick of a failed schedule."""
    pause: timedelta = RETRY * 2 ** min(row.failures, MOST_DOUBLINGS)
    again = row.now + pause
    try:
        following = row.recurrence.next(row.now)
    except Exception:  # noqa: BLE001 - the expression itself may be what is wrong
        following = None
    return again if following is None else min(again, max(following, row.now + RETRY))


def _text(error: Exception, before: str = "") -> str:
    return clean_text(f"{before}{type(error).__name__}: {error}", MESSAGE)
