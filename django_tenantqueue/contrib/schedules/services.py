"""Changes of schedules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from ...calls.arguments import encode_args
from ...conf import alias_of
from ...databases import check_home, database_of_call
from ...exceptions import InvalidOption
from ...models import Change, Job
from ...operations.changes import Edit, record_edits, record_rows
from ...operations.tuning import (
    Ids,
    add_row,
    check_columns,
    delete_rows,
    ids_of,
    lock_rows,
    switch_rows,
)
from .firing import enqueue_tick
from .models import Schedule
from .recurrence import ONCE, Cron, Every, read_when

TUNABLE = (
    *("name", "tenant", "task", "args", "kwargs", "queue", "priority"),
    *("kind", "expression", "time_zone", "jitter_seconds", "catch_up", "overlap"),
    *("starts_at", "ends_at", "enabled"),
)
"""Columns of a schedule that operators change."""
HIDDEN = ("args", "kwargs")
"""Columns that the audit log does not show: they may be secret."""
TIMES = ("kind", "expression", "time_zone", "jitter_seconds", "starts_at", "ends_at")
"""Columns that decide when a schedule is due."""


def make_schedule(
    name: str,
    task: str | Any,
    when: str | Cron | Every | datetime,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    using: str | None = None,
    **columns: Any,
) -> Schedule:
    """Create a schedule and return it.

    `task`: a task, its name, or "module:name" of a function. `when`: a cron expression, Cron(…),
    Every(…), or a datetime for a single run. `columns`: tenant (None: a job for each tenant that
    has the queue; "", the default: a job without a tenant), queue, priority, time_zone,
    jitter_seconds, catch_up, overlap, starts_at, ends_at, enabled. Raises InvalidOption,
    InvalidArgument, and Django's ValidationError, also if the tenant has one of this name.
    """
    alias = database_of_call("make_schedule", using, tenant=columns.get("tenant", ""))
    check_columns(columns, TUNABLE)
    if isinstance(when, datetime):
        if timezone.is_naive(when):
            raise InvalidOption(f"when={when!r} is naive: use django.utils.timezone")
        found: dict[str, Any] = {"kind": ONCE, "expression": when.isoformat()}
    else:
        found = columns_of(read_when(name, when))
    given = {n: value for n, value in found.items() if value or n not in columns}
    if args or kwargs is not None:
        given |= stored_call(args, kwargs or {})
    row = Schedule(name=name, task=getattr(task, "name", task), **{**given, **columns})
    add_schedule(row, using=alias)
    return row


def stored_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as columns. Raises InvalidArgument."""
    call = json.loads(encode_args(tuple(args), dict(kwargs)))
    return {"args": call["args"], "kwargs": call.get("kwargs", {})}


def columns_of(when: Cron | Every) -> dict[str, Any]:
    """Return the columns of a schedule that code declares."""
    jitter = when.jitter
    return {
        "kind": when.kind,
        "expression": when.expression,
        "time_zone": when.time_zone,
        "tenant": when.tenant,
        "jitter_seconds": jitter.total_seconds() if isinstance(jitter, timedelta) else jitter,
        "catch_up": when.catch_up,
        "overlap": when.overlap,
        **stored_call(when.args, when.kwargs),
    }


def add_schedule(row: Schedule, *, using: str | None = None) -> None:
    """Check a new row, write it, and record it. Raises Django's ValidationError."""
    alias = alias_of(using)
    row._state.db = alias
    row.full_clean(exclude=("id", "created_at"))
    row.set_next()
    add_row(alias, row, [name for name in TUNABLE if name not in HIDDEN])


def tune_schedule(ids: Ids, *, using: str | None = None, **changes: Any) -> list[int]:
    """Change columns of schedules; return the ids of the changed ones.

    Only the given columns are written. Ticks that were missed while a schedule was disabled follow
    its `catch_up`, unless its times are changed. Raises InvalidOption for an unknown column,
    Django's ValidationError for a wrong value, and Schedule.DoesNotExist.
    """
    alias = alias_of(using)
    check_columns(changes, TUNABLE)
    if not changes:
        return []
    given = {
        name: getattr(value, "name", value) if name == "task" else value
        for name, value in changes.items()
    }
    with transaction.atomic(using=alias):
        rows = lock_rows(alias, Schedule, ids)
        return [row.pk for row in rows if write_schedule(alias, row, given)]


def _locked(using: str) -> QuerySet[Schedule]:
    return Schedule.objects.using(using).order_by("pk").select_for_update(no_key=True)


def write_schedule(using: str, row: Schedule, changes: Mapping[str, Any]) -> bool:
    """Change columns of a row that the open transaction has locked; return whether any changed."""
    before = {name: getattr(row, name) for name in changes}
    for name, value in changes.items():
        setattr(row, name, value)
    changed = Edit(before, changes).changed()
    if "tenant" in changed:
        check_home(using, row.tenant)
    if changed != {"enabled"}:  # what has become wrong can be disabled
        row.full_clean(exclude=("id", "created_at"))
    if not changed:
        return False
    if changed & set(TIMES):
        row.set_next()
    elif row.failures and row.tick_at is not None:
        row.next_at = timezone.now()  # what was mended is tried at once
    row.save(using=using, update_fields=[*changed, "tick_at", "next_at", "after_tenant"])
    shown = changed.difference(HIDDEN)
    after = {name: getattr(row, name) for name in shown}
    if hidden := sorted(changed - shown):
        after["arguments"] = hidden
    record_edits(using, [row], [Edit({name: before[name] for name in shown}, after)])
    return True


def enable_schedules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Enable schedules; return the ids of those that were disabled.

    Ticks that were missed meanwhile follow `catch_up`.
    """
    return _switch(ids, using, enabled=True)


def disable_schedules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Disable schedules; return the ids of those that were enabled."""
    return _switch(ids, using, enabled=False)


def _switch(ids: Ids, using: str | None, *, enabled: bool) -> list[int]:
    chosen = Schedule.objects.filter(pk__in=ids_of(ids, Schedule))
    return [row.pk for row in switch_rows(alias_of(using), chosen, {"enabled": enabled})]


def run_schedules(ids: Ids, *, using: str | None = None) -> list[Job]:
    """Enqueue a job of each schedule now, enabled or not, and return the jobs.

    Their `scheduled_at` is now, and the next tick stays the same. A schedule for every tenant
    becomes due now and runs if it is enabled. All or nothing. Raises what `.delay()` raises, and
    UnknownTask.
    """
    alias = alias_of(using)
    jobs = []
    with transaction.atomic(using=alias):
        found = list(_locked(alias).filter(pk__in=ids_of(ids, Schedule)))
        for row in found:
            now = timezone.now()
            if row.tenant is None:
                row.tick_at = row.next_at = now
                row.after_tenant = None
                row.save(using=alias, update_fields=["tick_at", "next_at", "after_tenant"])
                continue
            job = enqueue_tick(alias, row, now)
            row.last_at, row.last_tick_at, row.last_job_id = now, now, job.pk
            row.save(using=alias, update_fields=["last_at", "last_tick_at", "last_job_id"])
            jobs.append(job)
        if found:
            edit = Edit({}, {"job": [job.pk for job in jobs[:10]]})
            record_rows(alias, Change.Action.RUN_NOW, found, edit)
    return jobs


def make_due(ids: Ids, *, using: str | None = None) -> list[int]:
    """Enqueue a job of each schedule, see run_schedules(); return the ids of the schedules.

    Disabled schedules for every tenant are skipped.
    """
    run_schedules(ids, using=using)
    rows = Schedule.objects.using(alias_of(using)).filter(pk__in=ids_of(ids, Schedule))
    return [row.pk for row in rows if row.enabled or row.tenant is not None]


def delete_schedules(ids: Ids, *, using: str | None = None) -> list[int]:
    """Delete schedules; return their ids. Their jobs stay.

    A schedule that code declares is created again when a worker starts: disable it instead.
    """
    chosen = Schedule.objects.filter(pk__in=ids_of(ids, Schedule))
    found = delete_rows(alias_of(using), chosen, ("task", "kind", "expression"))
    return [row.pk for row in found]
