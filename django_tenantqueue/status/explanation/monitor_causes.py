"""Why a monitor feeds no detail, and what its callback waits for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext, ngettext

from ...models import Change, ConcurrentJobMonitor, Job, TenantQueue
from ...queries.explain import MonitorGate, read_monitor_gate
from ..figures import duration_text
from .answer import Cause, Code, Target
from .gate_causes import session_causes
from .who import set_cause, who_did
from .words import target_of


def monitor_causes(
    using: str, job: Job, queue: TenantQueue | None, now: datetime
) -> Iterator[Cause]:
    """Yield why its monitor does not feed a detail, or does not run its callback."""
    gate = read_monitor_gate(using, job.monitor_id or 0)
    if gate is None:
        return
    target = Target("monitor", gate.id, f"{gate.name} #{gate.id}")
    yield from stops(using, gate, target)
    if job.held_by == "details":
        yield from _details(gate, target)
        return
    if gate.anchor_line == "session" and gate.session_key is not None:
        told = gettext("Its monitor waits for its turn in its session.")
        remedy = gettext("It goes on when the jobs before the monitor have ended.")
        yield Cause(Code.MONITOR_WAITS, told, remedy, target)
        yield from session_causes(using, gate.session_key, gate.anchor_id, now)
    yield from _full(gate, target, queue)


def stops(using: str, gate: MonitorGate, target: Target) -> Iterator[Cause]:
    """Yield why a monitor feeds nothing, in the words about one of its jobs."""
    row = ConcurrentJobMonitor(
        pk=gate.id, name=gate.name, paused=gate.paused, parallel=gate.parallel
    )
    row._state.db = using  # where its changes are
    if gate.cancelled_at is not None:
        yield Cause(
            Code.MONITOR_CANCELLED,
            gettext("Its monitor was cancelled: the job ends soon, without a run."),
            gettext("Start another monitor."),
            target,
            done_by=who_did(row, Change.Action.CANCEL),
        )
    if gate.paused:
        told, remedy = gettext("Its monitor is paused."), gettext("Resume the monitor.")
        yield set_cause(Code.MONITOR_PAUSED, row, "paused", told, remedy)
    if gate.is_stopped and gate.stop_after_failures is not None:
        told = ngettext(
            "Its monitor has stopped after %d failed detail.",
            "Its monitor has stopped after %d failed details.",
            gate.stop_after_failures,
        )
        remedy = gettext("Retry the failed details, or raise “stop after failures”.")
        yield Cause(Code.MONITOR_STOPPED, told % gate.stop_after_failures, remedy, target)
    if gate.parallel == 0:
        told = gettext("Its monitor feeds 0 details at once.")
        remedy = gettext("Raise “parallel” of the monitor.")
        yield set_cause(Code.MONITOR_WITHOUT_SLOTS, row, "parallel", told, remedy)


def _details(gate: MonitorGate, target: Target) -> Iterator[Cause]:
    told = gettext("It runs after the last detail of its monitor.")
    remedy = gettext("It goes on when the details have ended.")
    yield Cause(Code.DETAILS_LEFT, told, remedy, target)
    if gate.keep_open:
        told = gettext("Its monitor is open: more details may come.")
        remedy = gettext("Code closes it with close().")
        yield Cause(Code.MONITOR_OPEN, told, remedy, target)


def _full(gate: MonitorGate, target: Target, queue: TenantQueue | None) -> Iterator[Cause]:
    if gate.parallel and gate.in_flight >= gate.parallel:
        told = ngettext(
            "Its monitor has %d detail in flight, and its “parallel” allows no more.",
            "Its monitor has %d details in flight, and its “parallel” allows no more.",
            gate.parallel,
        )
        remedy = gettext("It is fed when one of them has ended. Or raise “parallel”.")
        yield Cause(Code.MONITOR_FULL, told % gate.parallel, remedy, target)
    if gate.feeds_in_seconds:
        told = gettext(
            "Its monitor feeds details every %(interval)s: the next time in %(time)s."
        ) % {
            "interval": duration_text(gate.interval),
            "time": duration_text(gate.feeds_in_seconds),
        }
        remedy = gettext("It is fed later by itself. Or lower the interval.")
        yield Cause(Code.MONITOR_INTERVAL, told, remedy, target)
    slots = None if queue is None else queue.num_slots
    if queue is not None and slots and slots < gate.parallel:
        told = ngettext(
            "Its queue has %(slots)d slot, fewer than the %(parallel)d details that its monitor "
            "may have in flight: no more than that run at once.",
            "Its queue has %(slots)d slots, fewer than the %(parallel)d details that its monitor "
            "may have in flight: no more than that run at once.",
            slots,
        ) % {"slots": slots, "parallel": gate.parallel}
        remedy = gettext("Give the queue more slots.")
        yield Cause(Code.QUEUE_BOUNDS_MONITOR, told, remedy, target_of(queue))
