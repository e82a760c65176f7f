"""Which gates hold a job: its session, its user's cap, its exclusive key, its task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext, ngettext

from ...conf import get_settings
from ...gates import EXCLUSIVE, SESSION, TASK, USER
from ...models import Job, Session, TaskControl, UserCap
from ...queries.explain import GateJob, list_gate_jobs
from ...queries.gates import count_sessions
from ...queries.tasks import count_tasks, seconds_to_start
from ...states import State
from ..amounts import NAMED
from ..figures import duration_text
from .answer import Cause, Code, Target
from .who import set_cause, who_set
from .words import numbers, target_of, until_text

_TENANT = re.compile(r"(?:[^\\/]|\\.)*/", re.DOTALL)
"""The part of a gate's key that names the tenant. The SQL of the gates agrees."""


def session_causes(using: str, key: str, job_id: int, now: datetime) -> Iterator[Cause]:
    """Yield why the session of that key does not let a job through."""
    row = Session.objects.using(using).filter(kind=Session.Kind.SERIAL, gate_key=key).first()
    target = None if row is None else target_of(row)
    if row is not None and row.halted_at is not None:
        told = gettext("Its session has halted since job #%d did not end well.")
        halted_by = row.halted_by or 0
        remedy = gettext("Look at that job, then resume the session.")
        yield Cause(Code.SESSION_HALTED, told % halted_by, remedy, target, [halted_by])
    if row is not None and row.paused:
        told, remedy = gettext("Its session is paused."), gettext("Resume the session.")
        yield set_cause(Code.SESSION_PAUSED, row, "paused", told, remedy)
    yield from _busy(using, key, row, job_id, now)


def _busy(using: str, key: str, row: Session | None, job_id: int, now: datetime) -> Iterator[Cause]:
    """Yield which job of its session comes first."""
    target = None if row is None else target_of(row)
    inside = [job for job in list_gate_jobs(using, SESSION, key, most=NAMED) if job.id != job_id]
    remedy = gettext("It goes on when that job has ended.")
    if inside:
        first = inside[0]
        told = gettext("It stands in the line of its session, behind job #%(id)d (%(does)s).")
        values = {"id": first.id, "does": _does(first, now)}
        yield Cause(Code.SESSION_BUSY, told % values, remedy, target, [first.id])
        return
    load = next(iter(count_sessions(using, [row.pk], most=1)), None) if row is not None else None
    if load is None or load.head_id in (None, job_id):
        return
    head = load.head_id or 0
    if load.head_run_at is not None and load.head_run_at > now:
        told = gettext("It stands in the line of its session, behind job #%(id)d (until %(at)s).")
        values = {"id": head, "at": until_text(load.head_run_at, now)}
    else:
        told = gettext("It stands in the line of its session, behind job #%(id)d.")
        values = {"id": head}
    yield Cause(Code.SESSION_BUSY, told % values, remedy, target, [head])


def _does(job: GateJob, now: datetime) -> str:
    if job.held_by == "details":
        return gettext("waits for the details of monitor #%d") % (job.monitor_id or 0)
    if job.state == "scheduled":
        return gettext("waits until %s") % until_text(job.run_at, now)
    return str(State(job.state).label)


def user_causes(using: str, key: str, *, busy: bool) -> Iterator[Cause]:
    """Yield why the cap of a user lets no job through."""
    caps = UserCap.objects.using(using)
    prefix = _TENANT.match(key)
    own = caps.filter(gate_key=key).first()
    of_all = caps.filter(gate_key=prefix[0]).first() if prefix and prefix[0] != key else None
    for row in (own, of_all):
        if row is not None and row.paused:
            told = (
                gettext("The cap of its user is paused.")
                if row is own
                else gettext("The cap of all users of its tenant is paused.")
            )
            yield set_cause(Code.USER_PAUSED, row, "paused", told, gettext("Resume the cap."))
    found = [cap for cap in (own, of_all) if cap is not None]
    row = next((cap for cap in found if cap.num_slots is not None), None)
    most = get_settings().default_user_slots if row is None else row.num_slots or 0
    shown = row or next(iter(found), None)
    target = None if shown is None else target_of(shown)
    if most == 0:
        told = gettext("Its user may run 0 jobs at once.")
        by = None if row is None else who_set(row, "num_slots", 0)
        yield Cause(Code.USER_WITHOUT_SLOTS, told, gettext("Raise the cap."), target, done_by=by)
    elif busy:
        inside = list_gate_jobs(using, USER, key, most=most)
        if len(inside) >= most:
            ids = [job.id for job in inside[:NAMED]]
            told = ngettext(
                "Its user has reached the cap: %(most)d job may run at once (%(jobs)s does).",
                "Its user has reached the cap: %(most)d jobs may run at once (%(jobs)s do).",
                most,
            ) % {"most": most, "jobs": numbers(ids)}
            remedy = gettext("It goes on when one of them has ended. Or raise the user's cap.")
            yield Cause(Code.USER_FULL, told, remedy, target, ids)


def exclusive_causes(using: str, job: Job) -> Iterator[Cause]:
    """Yield which job has the exclusive key."""
    inside = list_gate_jobs(using, EXCLUSIVE, job.exclusive_key or "", most=NAMED)
    ids = [holder.id for holder in inside if holder.id != job.pk]
    if ids:
        told = gettext("Job #%d has the same exclusive key and runs first.")
        remedy = gettext("It goes on when that job has ended.")
        target = Target("job", ids[0], f"#{ids[0]}")
        yield Cause(Code.EXCLUSIVE_HELD, told % ids[0], remedy, target, ids[:1])


def task_causes(using: str, job: Job, *, busy: bool) -> Iterator[Cause]:
    """Yield why the control of its task starts no job."""
    control = TaskControl.objects.using(using).filter(name=job.name).first()
    if control is None:
        return
    target = target_of(control)
    if control.paused:
        told, remedy = gettext("Its task is paused."), gettext("Resume the task.")
        yield set_cause(Code.TASK_PAUSED, control, "paused", told, remedy)
    if control.num_slots == 0:
        told, remedy = gettext("Its task may run 0 jobs at once."), gettext("Give the task slots.")
        yield set_cause(Code.TASK_WITHOUT_SLOTS, control, "num_slots", told, remedy)
    elif busy and not control.paused and control.num_slots and _is_full(using, control):
        told = ngettext(
            "Its task has reached its cap: %d job may run at once, of all tenants.",
            "Its task has reached its cap: %d jobs may run at once, of all tenants.",
            control.num_slots,
        )
        remedy = gettext("It goes on when one of its jobs has ended. Or raise the task's cap.")
        yield Cause(Code.TASK_FULL, told % control.num_slots, remedy, target)
    seconds = seconds_to_start(using, job.name) if busy and not control.paused else None
    # in the line it waits for those before it, even at a moment in which a start is due
    if seconds or (seconds is not None and job.held_by == TASK):
        told = (
            gettext(
                "Its task may start %(rate)s jobs in a second, of all tenants: the next one in "
                "%(time)s."
            )
            if seconds
            else gettext("Its task may start %(rate)s jobs in a second, of all tenants.")
        ) % {"rate": f"{control.max_per_second:g}", "time": duration_text(seconds)}
        remedy = gettext("It starts later by itself. A higher rate of the task starts jobs faster.")
        yield Cause(Code.TASK_RATE_SPENT, told, remedy, target)


def _is_full(using: str, control: TaskControl) -> bool:
    """Whether as many jobs of a task run as its cap allows."""
    most = control.num_slots or 0
    return any(load.inside >= most for load in count_tasks(using, [control.pk], most=most))
