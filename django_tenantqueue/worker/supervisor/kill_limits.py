"""When a supervisor kills one of its children, and how it describes a child that died.

A child enforces soft limits itself. These hold even when it is stopped, busy in C code, or without
a database: the supervisor sees the limits in the memory that it shares with the child.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import replace

from ...operations.rescue import DeathReport
from ...stored_error import HARD_TIME_LIMIT_EXCEEDED, MEMORY_LIMIT_EXCEEDED
from ..memory import rss_bytes
from ..shared_memory import BegunJob, Why
from .child import Child


class ProcessLimits:
    """Finds children that must be killed."""

    def __init__(self, kill_rss: int | None) -> None:
        self._kill_rss = kill_rss

    def condemn(self, children: Iterable[Child]) -> list[Child]:
        """Give each child that must be killed its `sentence`; return these children."""
        now = time.monotonic()
        found = []
        for child in children:
            if child.sentence is None:
                child.sentence = self._passed_limit(child, now) or self._too_large(child)
                if child.sentence is not None:
                    found.append(child)
        return found

    def seconds_to_next(self, children: Iterable[Child]) -> float:
        """Return how long nothing needs to be looked at."""
        if self._kill_rss is not None:
            return 0.1  # memory grows fast
        now = time.monotonic()
        limits = (
            begun_job.limit_at for child in children for begun_job in child.shared_memory.begun()
        )
        return min((at - now for at in limits if at is not None), default=1.0)

    def _passed_limit(self, child: Child, now: float) -> DeathReport | None:
        for begun_job in child.shared_memory.begun():
            if begun_job.limit_at is not None and begun_job.limit_at <= now:
                return DeathReport(
                    said_of(begun_job),
                    started=child.begun(),
                    culprit=begun_job.job_id,
                    is_recorded=False,
                    error=HARD_TIME_LIMIT_EXCEEDED,
                )
        return None

    def _too_large(self, child: Child) -> DeathReport | None:
        if self._kill_rss is None:
            return None
        taken = rss_bytes(child.pid)
        if taken is None or taken <= self._kill_rss:
            return None
        return DeathReport(
            f"its worker process used {taken >> 20} MB of memory, above its limit of "
            f"{self._kill_rss >> 20} MB, and was killed",
            started=child.begun(),
            crashed=True,
            error=MEMORY_LIMIT_EXCEEDED,
        )


def said_of(begun_job: BegunJob) -> str:
    """Return why a process is killed because of a job."""
    ran = (begun_job.limit_at or begun_job.begun_at) - begun_job.begun_at
    if begun_job.why is Why.CANCEL:
        return f"cancelled; it did not stop, so its worker process was killed after {ran:.1f} s"
    return f"it ran for {ran:.1f} s, its hard time limit, and its worker process was killed"


def explain_death(child: Child, status: int) -> DeathReport:
    """Return how a child died, from its wait status and what is known of it."""
    begun = child.begun()
    if child.sentence is not None:
        # what began after the sentence was passed has begun, too
        return replace(child.sentence, started=begun | (child.sentence.started or frozenset()))
    if child.is_unleased:
        return DeathReport(
            "its worker lost the database, and its process was killed before other workers could "
            "run its jobs",
            started=begun,
        )
    why = how_it_ended(status)
    if child.killed_at_stop or child.shared_memory.is_leaving:
        return DeathReport(
            f"its worker process was stopped with {why}",
            started=begun,
            blameless=True,
            is_recorded=False,
        )
    reason = f"its worker process ended with {why}"
    if why == "signal SIGKILL":
        reason += " (by an operator, or by the system because memory ran out)"
    return DeathReport(reason, started=begun, crashed=True)


def how_it_ended(status: int) -> str:
    """Say how a process ended, from its wait status."""
    code = os.waitstatus_to_exitcode(status)
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
