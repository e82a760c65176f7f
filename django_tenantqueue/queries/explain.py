"""Statements that find what keeps one job from starting. Each is bounded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import fetch


@dataclass(frozen=True, slots=True)
class GateJob:
    """A job that a gate has released."""

    id: int
    state: str
    run_at: datetime
    held_by: str | None
    monitor_id: int | None


@dataclass(frozen=True, slots=True)
class MonitorGate:
    """The state that decides whether a monitor feeds.

    `in_flight` is counted up to `parallel`. `feeds_in_seconds`: when its interval has passed; None:
    it has no interval, or was not fed yet.
    """

    id: int
    name: str
    parallel: int
    interval_seconds: float
    paused: bool
    stop_after_failures: int | None
    keep_open: bool
    cancelled_at: datetime | None
    session_key: str | None
    anchor_id: int
    anchor_line: str | None
    is_stopped: bool
    in_flight: int
    feeds_in_seconds: float | None


def list_gate_jobs(using: str, kind: str, key: str, *, most: int) -> list[GateJob]:
    """Return jobs that a session, a user limit or an exclusive key has released."""
    rows = fetch(using, "list_gate_jobs", {"kind": kind, "key": key, "most": most})
    return [GateJob(*row) for row in rows]


def read_monitor_gate(using: str, monitor_id: int) -> MonitorGate | None:
    """Return the MonitorGate of a monitor; None: it does not exist."""
    rows = fetch(using, "read_monitor_gate", {"monitor_id": monitor_id})
    return MonitorGate(*rows[0]) if rows else None
