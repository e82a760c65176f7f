"""Statements behind monitors: their anchors and details, what is left of them, what to feed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django.db import DatabaseError, connections, transaction

from ..gates import EXCLUSIVE, MONITOR, SESSION, USER
from .base import array, fetch, send_statement
from .direct import fetch_prepared
from .enqueue import NewJob
from .gates import LOCK_MILLISECONDS, Released, Where, is_lock_lost
from .locks import GATE_LOCK_CLASSES, LockClass

logger = logging.getLogger("django_tenantqueue")

_BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_LIMIT = b"SET LOCAL lock_timeout = %d" % LOCK_MILLISECONDS


class NewAnchor(NewJob):
    """A new anchor: a job that stands for all details of a monitor."""

    id: int
    monitor_id: int
    session_key: str | None


@dataclass(frozen=True, slots=True)
class NewDetails:
    """Details for the line of a monitor. `details`: a JSON array, see insert_details.sql."""

    monitor_id: int
    priority: int
    lane: int
    context: str | None
    details: str


@dataclass(frozen=True, slots=True)
class DetailCounts:
    """What has become of a monitor's details, and its columns at that moment.

    The anchor is final when it has no state.
    """

    monitor_id: int
    added: int
    in_line: int
    ready: int
    running: int
    retrying: int
    failed: int
    cancelled: int
    anchor_state: str | None
    anchor_line: str | None
    is_cancelled: bool
    paused: bool
    keep_open: bool
    parallel: int
    stop_after_failures: int | None
    aside: int
    """Details in the lines of tasks that are paused or full."""

    @property
    def left(self) -> int:
        """Details that have not ended."""
        return self.in_line + self.ready + self.running + self.retrying + self.aside


@dataclass(frozen=True, slots=True)
class FedDetail:
    """A detail in flight, or the anchor. `is_asked`: it is to be cancelled."""

    id: int
    state: str
    has_slot: bool
    is_asked: bool


@dataclass(frozen=True, slots=True)
class OpenMonitor:
    """A monitor with unfinished jobs. `is_open`: a release would change something."""

    id: int
    is_open: bool
    is_cancelled: bool


def next_job_id(using: str) -> int:
    """Return an id for a job that is about to be inserted."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT nextval('tenantqueue_job_id_seq')")
        return int(cursor.fetchone()[0])


def insert_anchor(using: str, anchor: NewAnchor) -> None:
    """Insert the anchor of a monitor."""
    fetch(using, "insert_anchor", anchor)


def insert_details(using: str, details: NewDetails) -> int:
    """Insert details; return how many."""
    params = {name: getattr(details, name) for name in NewDetails.__slots__}
    return len(fetch_prepared(connections[using], "insert_details", params))


def share_addition(using: str, monitor_id: int) -> bool:
    """Keep a monitor from ending until the end of the open transaction.

    Return whether later statements see what was committed before.
    """
    params = {"lock_class": LockClass.MONITOR_ADDITION, "key": str(monitor_id)}
    return bool(fetch(using, "share_addition", params)[0][0])


def release_monitors(where: Where, keys: Sequence[str], *, by_tenant: bool) -> Released:
    """Feed monitors, take back what is too many, and end those that have no details left.

    In a transaction of its own, which a worker sends in one round trip, or in Django's open one.
    Raises the error of a lock that could not be had, Django's on an alias: for feeding
    them, while the ends are left to the duty then.
    """
    lock = {"lock_class": GATE_LOCK_CLASSES[MONITOR], "keys": list(keys)}
    params = {"keys": list(keys), "by_tenant": by_tenant}
    if isinstance(where, psycopg.Connection):
        locked, rows = _exchange(where, ("lock_gates", lock), ("release_monitors", params))
    else:
        with transaction.atomic(using=where):
            _begin(where)
            locked = fetch(where, "lock_gates", lock)
            rows = fetch(where, "release_monitors", params)
    done, ended = as_released(rows)
    done.has_controls = any(has_controls for _, has_controls in locked)
    if ended:
        try:
            done.ready += _end_monitors(where, ended)
        except (psycopg.Error, DatabaseError) as error:
            if not is_lock_lost(error):
                raise
            # what was fed is announced all the same; the duty finds those that are to end
            logger.info("monitors end later: %s", error)
    return done


def as_released(rows: list[tuple[Any, ...]]) -> tuple[Released, list[str]]:
    """Return what was done, and the monitors that seem to have no details left."""
    done = Released()
    ended = []
    for job_id, passes, state, user, exclusive, session, monitor, *queue_priority in rows:
        if state == "done":
            ended.append(monitor)
            continue
        if state == "created":  # without passing: its priority was changed
            done.note(job_id, queue_priority, moved=not passes)
        # what was fed has come to its next gate, and what was taken back leaves those it was in;
        # an anchor has got another place in the line of its session
        for kind, key in ((SESSION, session), (USER, user), (EXCLUSIVE, exclusive)):
            if key is not None:
                done.later.setdefault(kind, set()).add(key)
    return done, ended


def _end_monitors(where: Where, keys: list[str]) -> int:
    """End those of these monitors that have no details left; return how many."""
    gates = {"lock_class": GATE_LOCK_CLASSES[MONITOR], "keys": sorted(keys)}
    additions = {"lock_class": LockClass.MONITOR_ADDITION, "keys": sorted(keys)}
    if isinstance(where, psycopg.Connection):
        with where.transaction():
            where.execute(b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            where.execute(_LIMIT)
            return _end_in_transaction(where, gates, additions)
    with transaction.atomic(using=where):
        _begin(where)
        return _end_in_transaction(where, gates, additions)


def _end_in_transaction(where: Where, gates: dict[str, Any], additions: dict[str, Any]) -> int:
    fetch(where, "lock_gates", gates)
    quiet = [key for (key,) in fetch(where, "lock_additions", additions)]
    return len(fetch(where, "end_monitors", {"keys": quiet})) if quiet else 0


def _begin(using: str) -> None:
    """Set up a transaction of Django that has begun, unless it is a caller's."""
    if len(connections[using].savepoint_ids) == 0:
        with connections[using].cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(_LIMIT.decode())


def _exchange(
    connection: psycopg.Connection[Any], *statements: tuple[str, dict[str, Any]]
) -> list[list[tuple[Any, ...]]]:
    """Run statements in a transaction, in one round trip; return the rows of each."""
    prepare = connection.prepare_threshold is not None
    try:
        with connection.pipeline():
            connection.execute(_BEGIN, prepare=prepare)
            connection.execute(_LIMIT, prepare=prepare)
            cursors = [send_statement(connection, name, params) for name, params in statements]
            connection.execute(b"COMMIT", prepare=prepare)
    except psycopg.Error:
        if not connection.broken:
            connection.rollback()
        raise
    return [cursor.fetchall() for cursor in cursors]


def find_open_monitors(
    where: Where, *, after: int, most: int, by_tenant: bool
) -> list[OpenMonitor]:
    """Look at up to `most` monitors with unfinished jobs, in the order of their ids."""
    params = {"after": after, "most": most, "by_tenant": by_tenant}
    return [OpenMonitor(*row) for row in fetch(where, "find_open_monitors", params)]


def count_details(using: str, ids: Sequence[int]) -> dict[int, DetailCounts]:
    """Count the details of monitors."""
    rows = fetch(using, "count_details", {"ids": array(ids)})
    return {row[0]: DetailCounts(*row) for row in rows}


def find_monitors_ahead(using: str, ids: Sequence[int]) -> dict[int, int]:
    """Return, by the ids of those that have one, a monitor whose ready details come first."""
    return dict(fetch(using, "find_monitors_ahead", {"ids": array(ids)}))


def list_detail_ends(
    using: str, ids: Sequence[int], *, most: int, since_seconds: float
) -> dict[int, list[datetime]]:
    """Return when the newest details of monitors ended, the newest first."""
    params = {"ids": array(ids), "most": most, "since_seconds": since_seconds}
    found: dict[int, list[datetime]] = {}
    for monitor_id, ended_at in fetch(using, "list_detail_ends", params):
        found.setdefault(monitor_id, []).append(ended_at)
    return found


def list_fed_details(using: str, monitor_id: int, *, most: int) -> list[FedDetail]:
    """Return what a monitor has in flight, and its anchor."""
    params = {"monitor_id": monitor_id, "most": most}
    return [FedDetail(*row) for row in fetch(using, "list_fed_details", params)]


def list_held_details(using: str, monitor_id: int, *, most: int) -> list[int]:
    """Return the ids of the first details in the line of a monitor and in those of their tasks."""
    params = {"monitor_id": monitor_id, "most": most}
    return [row[0] for row in fetch(using, "list_held_details", params)]
