"""Rows, jobs and times as the sentences of an answer name them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...gate_keys import EXCLUSIVE
from ...models import ConcurrentJobMonitor, Session, TaskControl, TenantQueue, Worker
from ..figures import duration_text
from ..held import GATES
from .answer import Target

Named = TenantQueue | Session | TaskControl | ConcurrentJobMonitor | Worker
"""Rows that an answer names."""
_KINDS: dict[str, str] = {
    "tenantqueue": "queue",
    "concurrentjobmonitor": "monitor",
    "taskcontrol": "task",
    "worker": "worker",
}
_GATES = {**GATES, EXCLUSIVE: _("exclusive key"), "details": _("details")}


def target_of(row: Named) -> Target:
    """Return the target that a row is."""
    if isinstance(row, Session):
        kind = "userlimit" if row.kind == Session.Kind.LIMIT_USER else "session"
    else:
        kind = _KINDS[str(row._meta.model_name)]
    return Target(kind, row.pk, str(row))


def gate_name(held_by: str | None) -> str:
    """Return what holds a job, as `Job.held_by` has it, in words."""
    return str(_GATES.get(held_by or "", held_by))


def numbers(ids: Sequence[int]) -> str:
    """Return jobs by their numbers."""
    return ", ".join(f"#{job_id}" for job_id in ids)


def moment_text(at: datetime) -> str:
    """Return a time in the current time zone."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}".rstrip()


def until_text(at: datetime, now: datetime) -> str:
    """Return a time and how far away it is: 2026-03-01 12:00:00 UTC, in 3 min 4 s."""
    away = duration_text(abs(at - now))
    told = gettext("%(at)s, in %(away)s") if at > now else gettext("%(at)s, %(away)s ago")
    return told % {"at": moment_text(at), "away": away}
