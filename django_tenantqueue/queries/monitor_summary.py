"""Statements that tell a job its monitor, and what has become of the details."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import fetch


@dataclass(frozen=True, slots=True)
class MonitorRow:
    """The monitor of a job. `is_callback`: the job runs after the details."""

    id: int
    name: str
    tenant: str
    priority: int
    parallel: int
    created_by: str | None
    created_at: datetime
    is_callback: bool


@dataclass(frozen=True, slots=True)
class Sums:
    """Counts of a monitor's details. `last_at`: when the one ended that ended last."""

    created_at: datetime
    added: int
    unfinished: int
    failed: int
    cancelled: int
    last_at: datetime | None


def read_monitor_of_job(using: str, job_id: int) -> MonitorRow | None:
    """Return the monitor of an unfinished job; None: it has none."""
    rows = fetch(using, "read_monitor_of_job", {"job_id": job_id})
    return MonitorRow(*rows[0]) if rows else None


def sum_up_monitor(using: str, monitor_id: int) -> Sums | None:
    """Return counts of a monitor's details; None: it was deleted."""
    rows = fetch(using, "sum_up_monitor", {"monitor_id": monitor_id})
    return Sums(*rows[0]) if rows else None
