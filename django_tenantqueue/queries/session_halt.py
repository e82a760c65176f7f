"""Halts of sessions, and which ends of jobs cause them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..gate_keys import JobGates
from ..states import State
from .base import Where, array, fetch

HALTING = (State.ERROR, State.CANCELLED)
"""Ends of a job that halt its session, where the job or the session wants that."""
End = tuple[int, str, str | None]
"""A job that ended: its id, its state, and its gates for JobGates.read()."""


def halt_params(ends: Iterable[End]) -> dict[str, Any]:
    """Return the parameters of halt_sessions.sql; empty if no session may halt."""
    bad = ((job_id, gates) for job_id, state, gates in ends if state in HALTING and gates)
    read = [(job_id, JobGates.read(gates)) for job_id, gates in bad]
    found = [(job_id, gates) for job_id, gates in read if gates.session is not None]
    if not found:
        return {}
    return {
        "keys": [gates.session for _, gates in found],
        "jobs": array(job_id for job_id, _ in found),
        "wanted": array(gates.halts for _, gates in found),
    }


def halt_sessions(where: Where, ends: Iterable[End]) -> None:
    """Halt the sessions of these jobs, where the end, and the job or the session, want that."""
    if params := halt_params(ends):
        fetch(where, "halt_sessions", params)
