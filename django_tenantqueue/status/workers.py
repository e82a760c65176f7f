"""The worker processes: what they do, and what they run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import TextChoices
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ..models import Duty, Worker
from ..models.worker import SILENT, Role
from ..queries import fleet as queries
from ..queries.fleet import RunningClaim
from .display_limits import PAGE
from .stored_rows import columns_of


class WorkerState(TextChoices):
    """What a worker process does, from its row."""

    WORKING = "working", _("working")
    IDLE = "idle", _("idle")
    DRAINING = "draining", _("draining")
    STOPPING = "stopping", _("stopping")
    SILENT = "silent", _("silent")


LEAVING = (WorkerState.DRAINING, WorkerState.STOPPING)


@dataclass(frozen=True, slots=True)
class DutyReport:
    """What a duty of the maintenance did last; see Duty. The ages are None where it never did."""

    name: str
    worker: str
    ran_at: datetime
    ran_seconds_ago: float
    duration_seconds: float
    runs: int
    outcome: str
    acted_at: datetime | None
    acted_seconds_ago: float | None
    error: str


def state_of(worker: Worker, now: datetime, claims: int | None = None) -> WorkerState:
    """Return what a worker does at `now`; `claims`: how many jobs it holds, None: not counted.

    A worker of short jobs sleeps between them, and often holds none when it is looked at. So it
    works while its last heartbeat says that it ends jobs.
    """
    if now - worker.heartbeat_at > SILENT:
        return WorkerState.SILENT
    if worker.stopping:
        return WorkerState.STOPPING
    if worker.draining:
        return WorkerState.DRAINING
    if worker.role != Role.WORKER:  # it never says that it sleeps
        return WorkerState.WORKING if claims or worker.jobs_running else WorkerState.IDLE
    sleeps = worker.sleeping_until is not None and worker.sleeping_until > now
    works = worker.jobs_running if claims is None else claims
    return (
        WorkerState.WORKING if works or worker.jobs_per_second or not sleeps else WorkerState.IDLE
    )


def list_running(using: str, worker_id: int | None = None, most: int = PAGE) -> list[RunningClaim]:
    """Return the jobs that one worker holds, or all of them (None), the longest first.

    At most `most` of each worker; `of_worker` of each job says how many its worker holds.
    """
    return queries.list_claims(using, worker_id=worker_id, most=most)


def list_duties(using: str) -> list[DutyReport]:
    """Return what each duty of the maintenance did last, by name."""
    return [
        DutyReport(
            **columns_of(duty, DutyReport),
            ran_seconds_ago=_seconds(duty.read_at - duty.ran_at),
            acted_seconds_ago=None
            if duty.acted_at is None
            else _seconds(duty.read_at - duty.acted_at),
        )
        for duty in Duty.objects.using(using).annotate(read_at=Now()).order_by("name")
    ]


def _seconds(age: timedelta) -> float:
    return max(age.total_seconds(), 0.0)
