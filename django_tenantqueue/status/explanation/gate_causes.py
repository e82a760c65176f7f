"""Which gates hold a job: its session, its user limit, its exclusive key, its task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...conf import get_settings
from ...gate_keys import EXCLUSIVE, LIMIT_USER, SESSION, TASK
from ...models import Job, Session, TaskControl, UserLimit
from ...queries.explain import GateJob, list_gate_jobs
from ...queries.gates import count_sessions
from ...queries.tasks import count_tasks, seconds_to_start
from ...states import State
from ..conditions import Code
from ..display_limits import NAMED
from ..figures import duration_text
from .answer import Cause, Target, cause_of
from .done_by import set_cause, who_set
from .names import numbers, target_of, until_text

_TENANT = re.compile(r"(?:[^\\/]|\\.)*/", re.DOTALL)
"""The part of a gate's key that names the tenant. The SQL of the gates agrees."""


def session_causes(using: str, key: str, job_id: int, now: datetime) -> Iterator[Cause]:
    """Yield why the session of that key does not let a job through."""
    row = Session.objects.using(using).filter(kind=Session.Kind.SERIAL, gate_key=key).first()
    target = None if row is None else target_of(row)
    if row is not None and row.halted_at is not None:
        halted_by = row.halted_by or 0
        yield cause_of(Code.SESSION_HALTED, {"job": halted_by}, target, [halted_by])
    if row is not None and row.paused:
        yield set_cause(Code.SESSION_PAUSED, row, "paused")
    yield from _busy(using, key, row, job_id, now)


def _busy(using: str, key: str, row: Session | None, job_id: int, now: datetime) -> Iterator[Cause]:
    """Yield which job of its session comes first."""
    target = None if row is None else target_of(row)
    inside = [job for job in list_gate_jobs(using, SESSION, key, most=NAMED) if job.id != job_id]
    if inside:
        first = inside[0]
        told = _("It waits in its session behind job #%(id)d (%(does)s).")
        values = {"id": first.id, "does": _does(first, now)}
        yield cause_of(Code.SESSION_BUSY, values, target, [first.id], told=told)
        return
    load = next(iter(count_sessions(using, [row.pk], most=1)), None) if row is not None else None
    if load is None or load.head_id in (None, job_id):
        return
    head = load.head_id or 0
    if load.head_run_at is not None and load.head_run_at > now:
        told = _("It waits in its session behind job #%(id)d (until %(at)s).")
        values = {"id": head, "at": until_text(load.head_run_at, now)}
        yield cause_of(Code.SESSION_BUSY, values, target, [head], told=told)
    else:
        yield cause_of(Code.SESSION_BUSY, {"id": head}, target, [head])


def _does(job: GateJob, now: datetime) -> str:
    if job.held_by == "details":
        return gettext("waits for the details of monitor #%d") % (job.monitor_id or 0)
    if job.state == "scheduled":
        return gettext("waits until %s") % until_text(job.run_at, now)
    return str(State(job.state).label)


def user_causes(using: str, key: str, *, busy: bool) -> Iterator[Cause]:
    """Yield why the limit of a user lets no job through."""
    limits = UserLimit.objects.using(using)
    prefix = _TENANT.match(key)
    own = limits.filter(gate_key=key).first()
    of_all = limits.filter(gate_key=prefix[0]).first() if prefix and prefix[0] != key else None
    for row in (own, of_all):
        if row is not None and row.paused:
            told = None if row is own else _("The limit of all users of its tenant is paused.")
            yield set_cause(Code.USER_PAUSED, row, "paused", told)
    found = [limit for limit in (own, of_all) if limit is not None]
    row = next((limit for limit in found if limit.num_slots is not None), None)
    most = get_settings().default_user_slots if row is None else row.num_slots or 0
    shown = row or next(iter(found), None)
    target = None if shown is None else target_of(shown)
    if most == 0:
        by = None if row is None else who_set(row, "num_slots", 0)
        yield cause_of(Code.USER_WITHOUT_SLOTS, target=target, done_by=by)
    elif busy:
        inside = list_gate_jobs(using, LIMIT_USER, key, most=most)
        if len(inside) >= most:
            ids = [job.id for job in inside[:NAMED]]
            yield cause_of(Code.USER_FULL, {"most": most, "jobs": numbers(ids)}, target, ids)


def exclusive_causes(using: str, job: Job) -> Iterator[Cause]:
    """Yield which job has the exclusive key."""
    inside = list_gate_jobs(using, EXCLUSIVE, job.exclusive_key or "", most=NAMED)
    ids = [holder.id for holder in inside if holder.id != job.pk]
    if ids:
        target = Target("job", ids[0], f"#{ids[0]}")
        yield cause_of(Code.EXCLUSIVE_HELD, {"id": ids[0]}, target, ids[:1])


def task_causes(using: str, job: Job, *, busy: bool) -> Iterator[Cause]:
    """Yield why the control of its task starts no job."""
    control = TaskControl.objects.using(using).filter(task=job.task).first()
    if control is None:
        return
    target = target_of(control)
    if control.paused:
        yield set_cause(Code.TASK_PAUSED, control, "paused")
    if control.num_slots == 0:
        yield set_cause(Code.TASK_WITHOUT_SLOTS, control, "num_slots")
    elif busy and not control.paused and control.num_slots and _is_full(using, control):
        yield cause_of(Code.TASK_FULL, {"slots": control.num_slots}, target)
    seconds = seconds_to_start(using, job.task) if busy and not control.paused else None
    # in the line it waits for those before it, even at a moment in which a start is due
    if seconds or (seconds is not None and job.held_by == TASK):
        told = (
            None if seconds else _("Its task may start %(rate)s jobs in a second, of all tenants.")
        )
        values = {"rate": f"{control.max_per_second:g}", "time": duration_text(seconds)}
        yield cause_of(Code.TASK_RATE_SPENT, values, target, told=told)


def _is_full(using: str, control: TaskControl) -> bool:
    most = control.num_slots or 0
    return any(load.inside >= most for load in count_tasks(using, [control.pk], most=most))
