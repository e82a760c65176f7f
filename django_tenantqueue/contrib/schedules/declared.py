"""Schedules that code declares: `@task(schedule=…)`."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.checks import CheckMessage, Error
from django.core.exceptions import ValidationError
from django.db import connections, transaction

from ...calls.sources import registered_tasks
from ...databases import database_of_tenant
from ...exceptions import InvalidOption
from ...queries.locks import KEY, LockKey
from .models import Schedule
from .recurrence import EPOCH, Cron, Every, Recurrence, read_when
from .services import add_schedule, columns_of, write_schedule

if TYPE_CHECKING:
    from ...tasks import Task

logger = logging.getLogger("django_tenantqueue")


def read_schedule(task: Task[..., Any], value: Any) -> Cron | Every:
    """Return the schedule of a task. Raises InvalidOption, TypeError for wrong arguments."""
    when = read_when(task.name, value)
    task._check_call(when.args, when.kwargs)
    return when


def declared_schedules() -> dict[str, Cron | Every]:
    """Return the schedules that tasks of this process declare, by task."""
    schedules = {task.name: task.extra.get("schedule") for task in registered_tasks().values()}
    return {name: when for name, when in schedules.items() if when is not None}


def check_schedules(**kwargs: Any) -> list[CheckMessage]:
    """E010: the times that a task declares cannot be used."""
    found: list[CheckMessage] = []
    for name, when in declared_schedules().items():
        try:
            Recurrence(when.kind, when.expression, when.time_zone, EPOCH).check()
        except InvalidOption as error:
            found.append(
                Error(
                    f"The schedule of task {name} cannot be used: {error}",
                    hint="Correct the schedule=… of its @task. See docs/howto/schedules.md.",
                    id="tenantqueue.E010",
                )
            )
    return found


@dataclass(frozen=True, slots=True)
class Synced:
    """Numbers of schedules."""

    added: int
    changed: int
    removed: int


def sync_schedules(using: str, *, whole: bool = False) -> Synced:
    """Write the schedules that the tasks of this process declare; return the numbers of changes.

    A schedule has the name of its task. An operator's `enabled` is kept. A schedule that is no
    longer declared is disabled and marked; without `whole`, only if this process knows its task,
    since another process may declare it. A schedule that is declared again is enabled.
    """
    added = changed = removed = 0
    with transaction.atomic(using=using):
        with connections[using].cursor() as cursor:
            cursor.execute(f"SELECT pg_advisory_xact_lock({KEY})", [LockKey.SCHEDULES])
        rows = Schedule.objects.using(using).exclude(source=Schedule.Source.ADMIN)
        found = {row.task: row for row in rows.order_by("pk").select_for_update(no_key=True)}
        for name, when in declared_schedules().items():
            if when.tenant is not None and database_of_tenant(when.tenant) != using:
                continue  # the workers of that database fire it
            columns = columns_of(when)
            row = found.pop(name, None)
            if row is None:
                added += _add(using, name, columns)
                continue
            if row.source == Schedule.Source.REMOVED:
                columns["enabled"] = True
            if any(getattr(row, column) != value for column, value in columns.items()):
                write_schedule(using, row, columns)
                changed += 1
            _mark(using, row, Schedule.Source.CODE)
        for name, row in found.items():
            if row.source == Schedule.Source.CODE and (whole or name in registered_tasks()):
                write_schedule(using, row, {"enabled": False})
                _mark(using, row, Schedule.Source.REMOVED)
                removed += 1
    return Synced(added, changed, removed)


def _add(using: str, task: str, columns: dict[str, Any]) -> bool:
    """Add the row of a declared schedule; return whether it could be stored."""
    longest = Schedule._meta.get_field("name").max_length or len(task)
    row = Schedule(name=task[-longest:], task=task, source=Schedule.Source.CODE, **columns)
    try:
        add_schedule(row, using=using)
    except ValidationError as error:
        errors = "; ".join(error.messages)
        logger.warning("storing the schedule of task %s failed, it will not run: %s", task, errors)
        return False
    return True


def _mark(using: str, row: Schedule, source: str) -> None:
    if row.source != source:
        row.source = source
        row.save(using=using, update_fields=["source"])
