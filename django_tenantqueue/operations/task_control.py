"""Pause tasks, or limit how many of their jobs run at once or start, on the whole fleet."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from django.db import transaction

from ..calls.options import check_text
from ..calls.sources import RegisteredTask, known_names
from ..conf import alias_of
from ..exceptions import InvalidOption
from ..models import TaskControl
from ..queries.tasks import TaskLoad, count_tasks, mark_task_jobs
from ..status.display_limits import COUNTED_TO
from ..status.task_names import is_known
from . import gates
from .tuning import Ids, delete_rows, ids_of, lock_or_make, switch_rows, tune_rows, write_columns

TUNABLE = ("paused", "num_slots", "max_per_second", "burst")
"""Columns of a control that operators change."""


def rate_task(
    name: str | RegisteredTask,
    max_per_second: float | None,
    burst: int | None = None,
    *,
    allow_unknown: bool = False,
    using: str | None = None,
) -> TaskControl:
    """Limit the starts of a task's jobs, over all tenants; `max_per_second` None: no limit.

    `burst`: jobs that may start at once after a pause; None, also to reset it: those of one second,
    at least one. A job whose claim is under way still starts. Raises InvalidOption for an
    unknown task, unless `allow_unknown` is true, and Django's ValidationError for a bad number.
    """
    alias = alias_of(using)
    task: Any = getattr(name, "name", name)
    if not allow_unknown:
        check_name(task, using=alias)
    with transaction.atomic(using=alias):
        control = make_control(alias, task)
        write_columns(alias, [control], {"max_per_second": max_per_second, "burst": burst})
        _take_effect(alias, [task])
    return control


def check_name(name: str, *, using: str | None = None) -> None:
    """Raise InvalidOption if no task, control or finished job has that name."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidOption(f"{name!r} is not the name of a task: give it as its jobs show it")
    check_text("task", name)
    if not is_known(alias_of(using), name):
        raise InvalidOption(
            f"no task, method or finished job is named {name!r} here.{near_tasks(name)} Use "
            "allow_unknown=True, or --allow-unknown on a command line, to control a task that only "
            "other code knows"
        )


def near_tasks(name: str) -> str:
    """Return a sentence that suggests tasks with a name near to this one; "" when none is near."""
    near = get_close_matches(name, known_names(), 3, 0.7)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def make_control(using: str, name: str) -> TaskControl:
    """Lock the control of a task, made if there is none, in a transaction.

    Raises InvalidOption for a name that no task can have.
    """
    most = TaskControl._meta.get_field("task").max_length or 0
    if not 1 <= len(check_text("task", name).strip()) <= most:
        raise InvalidOption(f"task={name[:100]!r}: a task's name has from 1 to {most} characters")
    return lock_or_make(TaskControl.objects.using(using), ["task"], {"task": name})


def tune_control(ids: Ids, *, using: str | None = None, **changes: Any) -> Sequence[int]:
    """Change columns of controls: paused, num_slots, max_per_second, burst.

    Return those that have other values now. Only the named columns are written. Raises
    InvalidOption for another column and Django's ValidationError for a bad value;
    TaskControl.DoesNotExist.
    """
    alias = alias_of(using)
    tuned = tune_rows(alias, TaskControl, ids, changes, TUNABLE)
    if tuned.rows:
        _take_effect(alias, [control.task for control in tuned.rows])
    return tuned.changed


def pause_controls(ids: Ids, *, using: str | None = None) -> list[int]:
    """Pause tasks by the ids of their controls; return those that were not paused before."""
    return _switch(ids, using, paused=True)


def resume_controls(ids: Ids, *, using: str | None = None) -> list[int]:
    """Resume tasks by the ids of their controls; return those that were paused before."""
    return _switch(ids, using, paused=False)


def _switch(ids: Ids, using: str | None, *, paused: bool) -> list[int]:
    alias = alias_of(using)
    rows = TaskControl.objects.filter(pk__in=ids_of(ids, TaskControl))
    found = switch_rows(alias, rows, {"paused": paused})
    if found:
        _take_effect(alias, [control.task for control in found])
    return [control.pk for control in found]


def delete_controls(ids: Ids, *, using: str | None = None) -> list[int]:
    """Delete controls, so that their tasks run freely; return those that there were.

    Jobs in their lines become ready in steps, some thousand jobs a second.
    """
    alias = alias_of(using)
    chosen = ids_of(ids, TaskControl)
    found = delete_rows(alias, TaskControl.objects.filter(pk__in=chosen), TUNABLE)
    _take_effect(alias, [control.task for control in found])
    return [control.pk for control in found]


def _take_effect(using: str, names: Sequence[str]) -> None:
    def act() -> None:
        mark_task_jobs(using)
        gates.let_tasks_through(using, names)

    transaction.on_commit(act, using=using, robust=True)


def task_loads(using: str, ids: Sequence[int]) -> dict[int, TaskLoad]:
    """Return the running and waiting jobs of tasks by the ids of their controls."""
    return {load.control_id: load for load in count_tasks(using, ids, most=COUNTED_TO)}
