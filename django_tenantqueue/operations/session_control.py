"""Changes that operators make to sessions and user limits, and the jobs that stand in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from ..conf import alias_of
from ..databases import are_several, check_home
from ..gate_keys import JobGates, gate_key
from ..models import Session
from ..queries.gates import SessionLoad, count_sessions, prune_sessions
from ..status.display_limits import COUNTED_TO
from .gates import release_later
from .tuning import (
    Ids,
    check_columns,
    ids_of,
    lock_or_make,
    switch_rows,
    tune_rows,
    write_columns,
)

TUNABLE = ("num_slots", "paused", "on_wait", "on_failure")
"""Columns of a session that operators change."""
OF_KIND = {
    Session.Kind.SERIAL: ("paused", "on_wait", "on_failure"),
    Session.Kind.LIMIT_USER: ("num_slots", "paused"),
}
"""Those of each kind of row."""


def _release(using: str, sessions: Sequence[Session]) -> None:
    serial = [row for row in sessions if row.kind == Session.Kind.SERIAL]
    # without the default of a tenant's users: the sweep comes to each within about a second
    limits = [row for row in sessions if row.kind == Session.Kind.LIMIT_USER and row.key]
    gates = [JobGates(session=row.gate_key) for row in serial]
    release_later(using, gates + [JobGates(limit_user=row.gate_key) for row in limits])


def make_session(using: str, kind: str, tenant: str, key: str) -> Session:
    """Lock the row of a session or of a user limit, made if there is none, in a transaction."""
    values = {"kind": kind, "tenant": tenant, "key": key, "gate_key": gate_key(tenant, key)}
    rows = Session.objects.using(using)
    if are_several() and not rows.filter(gate_key=values["gate_key"], kind=kind).exists():
        check_home(using, tenant)
    return lock_or_make(rows, ["gate_key", "kind"], values)


def make_user_limit(
    tenant: str, limit_user: str = "", *, num_slots: int | None, using: str | None = None
) -> Session:
    """Set how many jobs of a user run at once; "": of each user of the tenant with no own limit.

    Makes the row, or changes the one there is, and returns it. Raises Django's ValidationError.
    """
    alias = alias_of(using)
    with transaction.atomic(using=alias):
        row = make_session(alias, Session.Kind.LIMIT_USER, tenant, limit_user)
        write_columns(alias, [row], {"num_slots": num_slots})
        _release(alias, [row])
    return row


def tune_session(ids: Ids, *, using: str | None = None, **changes: Any) -> Sequence[int]:
    """Change columns of sessions or user limits: num_slots, paused, on_wait, on_failure.

    Return the changed ids. Only the named columns are written. The effect is immediate in both
    directions: released jobs that no worker has claimed go back into the line. Raises InvalidOption
    for another column and Django's ValidationError for a bad value; Session.DoesNotExist.
    """
    alias = alias_of(using)
    chosen = ids_of(ids, Session)
    kinds = Session.objects.using(alias).filter(pk__in=chosen).values_list("kind", flat=True)
    for kind in sorted(set(kinds)):
        check_columns(changes, OF_KIND[Session.Kind(kind)])
    tuned = tune_rows(alias, Session, chosen, changes, TUNABLE)
    _release(alias, tuned.rows)
    return tuned.changed


def pause_sessions(ids: Ids, *, using: str | None = None) -> list[int]:
    """Let no more jobs of these sessions through; return those that were not paused before."""
    return _switch(ids, using, paused=True)


def resume_sessions(ids: Ids, *, using: str | None = None) -> list[int]:
    """Let jobs of these sessions through again, of paused ones and of those that have halted.

    Return those that were paused or halted before.
    """
    return _switch(ids, using, paused=False, halted_at=None, halted_by=None)


def _switch(ids: Ids, using: str | None, **changes: Any) -> list[int]:
    alias = alias_of(using)
    found = switch_rows(alias, Session.objects.filter(pk__in=ids_of(ids, Session)), changes)
    _release(alias, found)
    return [session.pk for session in found]


def session_loads(using: str, ids: Sequence[int]) -> dict[int, SessionLoad]:
    """Count the jobs of sessions and users, by the ids of their rows."""
    return {load.session_id: load for load in count_sessions(using, ids, most=COUNTED_TO)}


@dataclass(slots=True)
class Pruning:
    """Removes the rows of idle sessions, a bounded number in each step."""

    most: int = 1000
    """Rows that one step reads."""
    keep_seconds: float = 3600.0
    """Age below which a row stays. Much less makes the rows of sessions in use again and again."""
    after: int = 0

    def step(self, using: str) -> int:
        """Delete those of the next rows that are not needed; return how many."""
        removed, self.after = prune_sessions(
            using, after=self.after, most=self.most, keep_seconds=self.keep_seconds
        )
        return removed
