"""Statements that read the monitor of a job, and the results of its details."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import fetch


@dataclass(frozen=True, slots=True)
class JobMonitor:
    """The monitor of a job, as it was when the job asked for it.

    `is_callback`: the job is the callback, and no detail.
    """

    id: int
    name: str
    tenant: str
    priority: int
    parallel: int
    created_by: str | None
    created_at: datetime
    is_callback: bool

    @property
    def label(self) -> str:
        """Its name and number."""
        return f"{self.name} #{self.id}"


@dataclass(frozen=True, slots=True)
class Sums:
    """Counts of a monitor's details. `last_at`: when the one ended that ended last."""

    created_at: datetime
    added: int
    unfinished: int
    failed: int
    cancelled: int
    last_at: datetime | None


def read_monitor_of_job(using: str, job_id: int) -> JobMonitor | None:
    """Return the monitor of an unfinished job; None: it has none."""
    rows = fetch(using, "read_monitor_of_job", {"job_id": job_id})
    return JobMonitor(*rows[0]) if rows else None


def sum_up_monitor(using: str, monitor_id: int) -> Sums | None:
    """Return counts of a monitor's details; None: it was deleted."""
    rows = fetch(using, "sum_up_monitor", {"monitor_id": monitor_id})
    return Sums(*rows[0]) if rows else None
