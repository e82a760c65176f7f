"""Why a monitor feeds no detail, and what its callback waits for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ...models import Change, ConcurrentJobMonitor, Job, TenantQueue
from ...queries.explain import MonitorGate, read_monitor_gate
from ..conditions import Code
from ..figures import duration_text
from .answer import Cause, Target, cause_of
from .done_by import set_cause, who_did
from .gate_causes import session_causes
from .names import target_of


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
        yield cause_of(Code.MONITOR_WAITS, target=target)
        yield from session_causes(using, gate.session_key, gate.anchor_id, now)
    yield from _full(gate, target, queue)


def stops(using: str, gate: MonitorGate, target: Target) -> Iterator[Cause]:
    """Yield why a monitor feeds nothing, in the words about one of its jobs."""
    row = ConcurrentJobMonitor(
        pk=gate.id, name=gate.name, paused=gate.paused, parallel=gate.parallel
    )
    row._state.db = using  # where its changes are
    if gate.cancelled_at is not None:
        by = who_did(row, Change.Action.CANCEL)
        yield cause_of(Code.MONITOR_CANCELLED, target=target, done_by=by)
    if gate.paused:
        yield set_cause(Code.MONITOR_PAUSED, row, "paused")
    if gate.is_stopped and gate.stop_after_failures is not None:
        yield cause_of(Code.MONITOR_STOPPED, {"failures": gate.stop_after_failures}, target)
    if gate.parallel == 0:
        yield set_cause(Code.MONITOR_WITHOUT_SLOTS, row, "parallel")


def _details(gate: MonitorGate, target: Target) -> Iterator[Cause]:
    yield cause_of(Code.DETAILS_LEFT, target=target)
    if gate.keep_open:
        yield cause_of(Code.MONITOR_OPEN, target=target)


def _full(gate: MonitorGate, target: Target, queue: TenantQueue | None) -> Iterator[Cause]:
    if gate.parallel and gate.in_flight >= gate.parallel:
        yield cause_of(Code.MONITOR_FULL, {"parallel": gate.parallel}, target)
    if gate.feeds_in_seconds:
        values = {
            "interval": duration_text(gate.interval_seconds),
            "time": duration_text(gate.feeds_in_seconds),
        }
        yield cause_of(Code.MONITOR_INTERVAL, values, target)
    slots = None if queue is None else queue.num_slots
    if queue is not None and slots and slots < gate.parallel:
        bounds = {"slots": slots, "parallel": gate.parallel}
        yield cause_of(Code.QUEUE_BOUNDS_MONITOR, bounds, target_of(queue))
