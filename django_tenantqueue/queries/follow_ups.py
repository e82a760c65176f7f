"""Jobs that were enqueued at the end of others: see sql/parts/move_to_history.sql.

A job stores them in `follow_ups`, a list of objects: `on` is "success" or "end", and the rest is
the row of a job. `delay_seconds` and `expires_seconds` count from the end of the job that stores
them. Those that were enqueued have an `id`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..gate_keys import JobGates
from .base import Where, array, fetch


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A job that the end of another has enqueued. `waits`: it is not ready yet."""

    id: int
    place: tuple[int, int, int]
    """Its lane, the id of its queue, and its priority."""
    gates: JobGates
    waits: bool


def read_follow_ups(texts: Iterable[str | None]) -> list[FollowUp]:
    """Return the jobs that were enqueued, from what the ended ones store of their follow-ups."""
    return [
        _follow_up(stored)
        for text in texts
        if text is not None
        for stored in json.loads(text)
        if "id" in stored
    ]


def _follow_up(stored: dict[str, object]) -> FollowUp:
    gates = JobGates(
        session=_text(stored, "session_key"),
        limit_user=_text(stored, "limit_user"),
        exclusive=_text(stored, "exclusive_key"),
    )
    lane, queue_id, priority = (_number(stored, n) for n in ("lane", "queue_id", "priority"))
    waits = gates.first() is not None or "run_at" in stored or "delay_seconds" in stored
    return FollowUp(_number(stored, "id"), (lane, queue_id, priority), gates, waits)


def _text(stored: dict[str, object], name: str) -> str | None:
    value = stored.get(name)
    return None if value is None else str(value)


def _number(stored: dict[str, object], name: str) -> int:
    value = stored[name]
    assert isinstance(value, int), f"{name}={value!r} of a follow-up"
    return value


@dataclass(frozen=True, slots=True)
class PreviousResult:
    """The result of the previous job, as JSON text or as the reference to a cache."""

    result: str | None
    result_ref: str | None
    is_there: bool


def read_previous_results(where: Where, ids: Sequence[int]) -> dict[int, PreviousResult]:
    """Return the results of the jobs that those of `ids` follow, by the ids of these."""
    rows = fetch(where, "read_previous_results", {"ids": array(ids)})
    return {row[0]: PreviousResult(*row[1:]) for row in rows}
