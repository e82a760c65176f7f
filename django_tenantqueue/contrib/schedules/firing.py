"""Enqueue the jobs of schedules that are due: the part of the leader's maintenance.

A tick and the move to the next one are in one transaction. So each tick is fired once, whoever
leads, also when the leader dies in it.
"""

from __future__ import annotations

import json
import logging
import random
from datetime import datetime, timedelta

from django.db import connections, transaction

from ...batches import SMALL_BATCH
from ...calls.arguments import decode_args
from ...calls.options import Options
from ...calls.sources import describe_named
from ...calls.tenant import use_tenant
from ...conf import get_settings
from ...execution.outcome import MOST_DOUBLINGS
from ...models import Job, TenantQueue
from ...operations.enqueue import enqueue
from ...queries.base import Where
from ...status.amounts import MESSAGE
from ...text import clean_text
from . import queries
from .models import Schedule
from .queries import DueSchedule, ScheduleMove

logger = logging.getLogger("django_tenantqueue")

GRACE = timedelta(minutes=5)
"""A tick that is fired later than this is missed."""
RETRY = GRACE / 10
"""Pause after the first failure of a schedule. It doubles up to 32 minutes, or until the tick."""


def fire_schedules(using: str, now: datetime | None = None) -> int:
    """Enqueue the jobs of up to SMALL_BATCH due schedules; return how many schedules were due.

    A schedule that fails keeps its error and is tried again; the others go on. `now` is the
    database's clock if None.
    """
    with transaction.atomic(using=using):
        due = queries.lock_due_schedules(using, most=SMALL_BATCH, now=now)
        rows = Schedule.objects.using(using).in_bulk([found.id for found in due])
        moves = _fire_all(using, [(rows[found.id], found) for found in due if found.id in rows])
        if moves:
            queries.move_schedules(using, moves)
    return len(due)


def seconds_to_next_schedule(where: Where) -> float | None:
    """Return the seconds until the next schedule is due; None: there is none."""
    return queries.next_schedule(where)


def _fire_all(using: str, pairs: list[tuple[Schedule, DueSchedule]]) -> list[ScheduleMove]:
    """Fire schedules together; when one of them fails, all anew, each in a savepoint of its own.

    Together they need a third of the round trips, and one wake-up.
    """
    try:
        with transaction.atomic(using=using):
            return [_fire(using, row, due) for row, due in pairs]
    except Exception:
        raw = connections[using].connection
        if raw is None or raw.closed:
            raise
    return [_fire_alone(using, row, due) for row, due in pairs]


def _fire_alone(using: str, row: Schedule, due: DueSchedule) -> ScheduleMove:
    try:
        with transaction.atomic(using=using):
            return _fire(using, row, due)
    except Exception as error:  # noqa: BLE001 - whatever the task's code and the database raise
        return _failed(row, due.now, error)


def _fire(using: str, row: Schedule, due: DueSchedule) -> ScheduleMove:
    tick, following = _choose(row, due)
    if tick is None:
        return _move(row, following, error=row.last_error)
    if row.all_tenants:
        return _fire_for_tenants(using, row, due.now, tick, following)
    job = enqueue_tick(using, row, tick)
    return _move(row, following, now=due.now, tick=tick, job=job)


def _choose(row: Schedule, due: DueSchedule) -> tuple[datetime | None, datetime | None]:
    """Return the tick to enqueue a job for, if any, and the one that follows."""
    tick, recurrence = row.tick_at, row.recurrence
    assert tick is not None
    if row.after_tenant is not None:  # in the middle of it
        return tick, recurrence.next(tick)
    if row.overlap == Schedule.Overlap.SKIP and due.is_running:
        return None, recurrence.next(max(tick, due.now))
    if row.catch_up == Schedule.CatchUp.ALL:
        return tick, recurrence.next(tick)
    latest = recurrence.latest(tick, due.now)
    jitter = timedelta(seconds=row.jitter_seconds)
    assert row.next_at is not None
    late = due.now - (row.next_at if latest == tick else latest + jitter)
    if row.catch_up == Schedule.CatchUp.ONCE or late <= GRACE:
        return latest, recurrence.next(latest)
    return None, recurrence.next(latest)


def enqueue_tick(using: str, row: Schedule, tick: datetime, tenant: str | None = None) -> Job:
    """Enqueue the job of a tick, in the caller's transaction. `tenant`: that of the row if None.

    Raises what `.delay()` raises, and UnknownTask, NotAllowed, Permanent.
    """
    source, task = describe_named(row.task)
    text = json.dumps({"args": row.args, "kwargs": row.kwargs})
    args, kwargs = decode_args(text, {"scheduled_at": tick})
    source.check_call(tuple(args), kwargs)
    whose = row.tenant if tenant is None else tenant
    given = {"tenant": whose, "queue": row.queue or None, "priority": row.priority}
    options = Options() if task is None else task.options
    options = options.merged({n: v for n, v in given.items() if v is not None})
    with use_tenant(whose):
        return enqueue(source, options, tuple(args), kwargs, task=task, context="")


def tenants_of_queue(using: str, row: Schedule, most: int) -> list[str]:
    """Return the next tenants that have the queue of a schedule and have not had this tick."""
    name = row.queue
    if not name:
        _source, task = describe_named(row.task)
        name = (task.options.queue if task else None) or get_settings().default_queue
    queues = TenantQueue.objects.using(using).filter(name=name, retired=False)
    if row.after_tenant is not None:
        queues = queues.filter(tenant__gt=row.after_tenant)
    return list(queues.order_by("tenant").values_list("tenant", flat=True)[:most])


def _fire_for_tenants(
    using: str, row: Schedule, now: datetime, tick: datetime, following: datetime | None
) -> ScheduleMove:
    """Enqueue the jobs of the next tenants. What fails for one of them is noted, not repeated."""
    tenants = tenants_of_queue(using, row, SMALL_BATCH)
    job, error = None, "" if row.after_tenant is None else row.last_error
    for tenant in tenants:
        try:
            with transaction.atomic(using=using):
                job = enqueue_tick(using, row, tick, tenant)
        except Exception as failure:  # noqa: BLE001 - see _fire()
            error = _text(failure, f"tenant {tenant!r}: ")
            logger.warning("schedule %s failed for %s", row.pk, error)
    if len(tenants) == SMALL_BATCH:
        return ScheduleMove(
            row.pk,
            tick_at=tick,
            next_at=row.next_at,
            after_tenant=tenants[-1],
            last_at=now,
            last_tick_at=tick,
            last_job_id=None if job is None else job.pk,
            last_error=error,
            last_error_at=now if error else None,
            failures=row.failures,
        )
    failed_at = now if error else None
    return _move(row, following, now=now, tick=tick, job=job, error=error, failed_at=failed_at)


def _move(
    row: Schedule,
    following: datetime | None,
    *,
    now: datetime | None = None,
    tick: datetime | None = None,
    job: Job | None = None,
    error: str = "",
    failed_at: datetime | None = None,
) -> ScheduleMove:
    planned = tick if row.failures or row.tick_at != tick else row.next_at
    late = None
    if now is not None and planned is not None:
        late = max(0.0, (now - planned).total_seconds())
    return ScheduleMove(
        row.pk,
        tick_at=following,
        next_at=next_look(row, following),
        last_at=now,
        last_tick_at=tick,
        last_job_id=None if job is None else job.pk,
        lateness_seconds=late,
        last_error=error,
        last_error_at=failed_at or (row.last_error_at if error else None),
        failures=row.failures + 1 if failed_at else row.failures if error else 0,
    )


def next_look(row: Schedule, tick: datetime | None) -> datetime | None:
    """Return when maintenance fires a tick: later by the schedule's jitter."""
    if tick is None:
        return None
    return tick + timedelta(seconds=random.uniform(0.0, row.jitter_seconds))


def _failed(row: Schedule, now: datetime, error: Exception) -> ScheduleMove:
    """Return the move of a schedule whose tick is tried again."""
    logger.warning("schedule %s (%s) failed: %s", row.pk, row, error)
    pause = RETRY * 2 ** min(row.failures, MOST_DOUBLINGS)
    try:
        following = row.recurrence.next(now)
    except Exception:  # noqa: BLE001 - the expression itself may be what is wrong
        following = None
    again = now + pause if following is None else min(now + pause, max(following, now + RETRY))
    return ScheduleMove(
        row.pk,
        tick_at=row.tick_at,
        next_at=again,
        after_tenant=row.after_tenant,
        last_error=_text(error),
        last_error_at=now,
        failures=row.failures + 1,
    )


def _text(error: Exception, before: str = "") -> str:
    return clean_text(f"{before}{type(error).__name__}: {error}", MESSAGE)
