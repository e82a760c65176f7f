"""Statements about the rows of sessions and users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connections, transaction

from ..gates import SESSION, USER
from .base import array, fetch
from .locks import GATE_LOCK_CLASSES


@dataclass(frozen=True, slots=True)
class SessionLoad:
    """What stands in a session now. The first of those inside and the head: of sessions alone."""

    session_id: int
    inside: int
    line: int
    first_id: int | None = None
    first_state: str | None = None
    first_run_at: datetime | None = None
    first_held_by: str | None = None
    first_monitor_id: int | None = None
    head_id: int | None = None
    head_run_at: datetime | None = None
    head_skip: bool | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a step of the pruning did. `after`: where to go on; None: it came round."""

    removed: int
    after: int | None


def count_sessions(using: str, ids: Sequence[int], *, most: int) -> list[SessionLoad]:
    """Return what stands in sessions and users' lines, counted up to `most`."""
    rows = fetch(using, "count_sessions", {"ids": array(ids), "most": most})
    return [SessionLoad(*row) for row in rows]


def prune_sessions(using: str, *, after: int, most: int, keep_seconds: float) -> Pruned:
    """Remove idle rows among the next `most` that could be."""
    params = {
        "after": after,
        "most": most,
        "keep_seconds": keep_seconds,
        "serial_class": GATE_LOCK_CLASSES[SESSION],
        "user_class": GATE_LOCK_CLASSES[USER],
    }
    with transaction.atomic(using=using):
        if len(connections[using].savepoint_ids) == 0:
            with connections[using].cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        ids, looked_at, last = fetch(using, "lock_idle_gates", params)[0]
        # a later statement: it sees what was let through before the locks
        removed = fetch(using, "prune_sessions", {"ids": array(ids)}) if ids else []
    return Pruned(len(removed), last if looked_at == most else None)
