"""Halts of sessions, and which ends of jobs cause them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..gate_keys import JobGates
from ..states import State
from .base import Where, array, fetch

HALTING = (State.ERROR, State.CANCELLED)
"""Ends of a job that halt its session, where the job or the session wants that."""


@dataclass(frozen=True, slots=True)
class Halt:
    """A job of a session with such an end. `wanted`: the job says so."""

    session: str
    job_id: int
    wanted: bool


def halt_of(job_id: int, state: str, gates: str | None) -> Halt | None:
    """Return what may halt the session of a job that ended; None: it has none, or no such end."""
    if state not in HALTING or not gates:
        return None
    read = JobGates.read(gates)
    return None if read.session is None else Halt(read.session, job_id, read.halts)


def halt_params(halts: Sequence[Halt]) -> dict[str, Any]:
    """Return the parameters of halt_sessions.sql."""
    return {
        "keys": [halt.session for halt in halts],
        "jobs": array(halt.job_id for halt in halts),
        "wanted": array(halt.wanted for halt in halts),
    }


def halt_sessions(where: Where, halts: Sequence[Halt]) -> None:
    """Halt sessions in which a job ended badly, where the job or the session wants that."""
    if halts:
        fetch(where, "halt_sessions", halt_params(halts))
