"""One gate after another: what a release lets through may come to the next one."""

from __future__ import annotations

import json

import psycopg
from django.db import connections, transaction

from ..exceptions import DuplicateJob
from ..gates import EXCLUSIVE, MONITOR, ORDER, SESSION, USER, split_gate_key
from ..queries.base import array, fetch
from ..queries.gates import LOCK_MILLISECONDS, Keys, Released, Where
from ..queries.locks import GATE_LOCK_CLASSES
from ..stored_error import stored_error

_RELEASES = {SESSION: "release_sessions", USER: "release_users", EXCLUSIVE: "release_exclusives"}
_ROWS = {SESSION: "serial", USER: "user"}
"""Gates that have a row in the table of sessions, of this kind."""


def release_in_transaction(where: Where, keys: Keys, *, user_slots: int) -> Released:
    """Let jobs through the gates `keys` and all later ones that they come to, but for monitors.

    `where` must be in a READ COMMITTED transaction. Raises the error of a lock that could not be
    had, Django's on an alias.
    """
    wanted: Keys = {kind: set(keys.get(kind, ())) for kind in ORDER}
    done = Released()
    for kind, name in _RELEASES.items():
        if not wanted[kind]:
            continue
        chosen = sorted(wanted[kind])
        done.has_controls |= _lock(where, kind, chosen)
        if kind in _ROWS:
            _make_rows(where, _ROWS[kind], chosen)
        params = {"keys": chosen, "kind": kind, "num_slots": user_slots}
        if kind == EXCLUSIVE:
            _reject(where, chosen)
        some_passed = False
        for job_id, passes, state, user, exclusive, monitor, *place in fetch(where, name, params):
            if passes and state == "created":
                done.note(job_id, place)
            some_passed |= passes
            # what passed has come to its next gate, and what was taken back leaves those it was in
            if user is not None and kind == SESSION:
                wanted[USER].add(user)
            if exclusive is not None:
                wanted[EXCLUSIVE].add(exclusive)
            if monitor is not None:  # its anchor has the turn, or has lost it
                done.later.setdefault(MONITOR, set()).add(monitor)
        if kind == EXCLUSIVE and some_passed:
            _reject(where, chosen)
    return done


def _reject(where: Where, keys: list[str]) -> None:
    """Cancel what does not wait before these exclusive keys, where another has passed."""
    found = [row[0] for row in fetch(where, "find_rejected", {"keys": keys})]
    if found:
        reason = "another job with its key was under way (while_executing_reject)"
        error = json.dumps(stored_error(DuplicateJob, reason))
        fetch(where, "cancel_waiting_jobs", {"ids": array(found), "error": error})


def _lock(where: Where, kind: str, keys: list[str]) -> bool:
    rows = fetch(where, "lock_gates", {"lock_class": GATE_LOCK_CLASSES[kind], "keys": keys})
    return any(has_controls for _, has_controls in rows)


def _make_rows(where: Where, kind: str, keys: list[str]) -> None:
    pairs = [split_gate_key(key) for key in keys]
    params = {
        "kind": kind,
        "tenants": [tenant for tenant, _ in pairs],
        "names": [name for _, name in pairs],
        "keys": keys,
    }
    fetch(where, "make_sessions", params)


def release(where: Where, keys: Keys, *, user_slots: int) -> Released:
    """Do release_in_transaction() in a transaction of its own, or in Django's open one.

    A lock is waited for LOCK_MILLISECONDS at most.
    """
    limit = f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}"
    if isinstance(where, psycopg.Connection):
        with where.transaction():
            where.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            where.execute(limit.encode())
            return release_in_transaction(where, keys, user_slots=user_slots)
    with transaction.atomic(using=where), connections[where].cursor() as cursor:
        if len(connections[where].savepoint_ids) == 0:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(limit)
        return release_in_transaction(where, keys, user_slots=user_slots)
