"""Django's connections of a thread, and their clean-up between runs.

A run that leaves a transaction open has failed. After each run a connection is closed, or its
session is reset if Django keeps it (CONN_MAX_AGE). The next run finds it like a new one.
"""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ..conf import get_settings
from ..exceptions import TransactionLeftOpen

logger = logging.getLogger("django_tenantqueue")

OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


def open_blocks() -> dict[str, int]:
    """Return how many atomic blocks are open on each connection of this thread, by alias."""
    return {w.alias: len(w.atomic_blocks) for w in connections.all(initialized_only=True)}


def check_blocks(before: Mapping[str, int]) -> None:
    """Raise TransactionLeftOpen unless the blocks of `before` are open, and no others."""
    if left := left_open(before):
        raise TransactionLeftOpen(
            f"the task left {left}: what it wrote there is rolled back. Use "
            "`with transaction.atomic():`, and end in the task what it begins"
        )


def left_open(before: Mapping[str, int]) -> str:
    """Say what is open that `before` has not, or the reverse; "" if nothing is."""
    for wrapper in connections.all(initialized_only=True):
        known = before.get(wrapper.alias, 0)
        count = len(wrapper.atomic_blocks) - known
        if count > 0:
            left = f"{count} atomic block{'s' if count > 1 else ''} open"
        elif count < 0:
            left = "a block closed that it had not opened"
        elif known and status_of(wrapper) == TransactionStatus.ACTIVE:
            left = "a COPY or a stream under way"
            type(wrapper).close(wrapper)  # or its rollback waits for the lock of the COPY
        elif not known and status_of(wrapper) in OPEN:
            left = "a transaction open"
        elif not known and _lost_autocommit(wrapper):
            left = "autocommit turned off, so that each statement opens a transaction"
        else:
            continue
        return f"{left} on the database {wrapper.alias!r}"
    return ""


def status_of(wrapper: BaseDatabaseWrapper) -> TransactionStatus | None:
    """Return the state of a connection's transaction; None: it is closed, or no PostgreSQL."""
    if wrapper.vendor != "postgresql" or wrapper.connection is None:
        return None
    status: TransactionStatus = wrapper.connection.info.transaction_status
    return status


def _lost_autocommit(wrapper: BaseDatabaseWrapper) -> bool:
    expected: bool = wrapper.settings_dict["AUTOCOMMIT"]
    return wrapper.connection is not None and wrapper.autocommit != expected


def close_ended_connections() -> None:
    """Close the connections of this thread that the server has ended; the next use opens others.

    A kept one may have been ended since its last use. No round trip: only the end of the socket is
    looked for. Never raises an Exception.
    """
    for wrapper in connections.all(initialized_only=True):
        try:
            if wrapper.vendor == "postgresql" and not wrapper.in_atomic_block:
                raw = wrapper.connection
                if raw is not None and _has_ended(raw):
                    _drop(wrapper)
        except Exception:
            logger.exception("checking a connection to %r failed", wrapper.alias)


def _has_ended(raw: psycopg.Connection[Any]) -> bool:
    if raw.closed:
        return True
    if raw.info.transaction_status != TransactionStatus.IDLE:
        return False
    look = select.poll()
    look.register(raw.fileno(), select.POLLIN)
    try:
        for _ in range(10):
            if not look.poll(0):
                break
            raw.pgconn.consume_input()  # a notification, or the server's last words
    except psycopg.OperationalError:
        return True
    return False


def reset_connections(*, keep: bool = False) -> bool:
    """Make all connections of this thread clean, or close them; return whether one is open.

    `keep`: also those that Django would close now (CONN_MAX_AGE). Never raises an Exception.
    """
    is_open = False
    for wrapper in connections.all(initialized_only=True):
        try:
            is_open |= _reset(wrapper, keep)
        except Exception:
            logger.exception("resetting a connection to %r failed: it is closed", wrapper.alias)
            _drop(wrapper)
    return is_open


def _reset(wrapper: BaseDatabaseWrapper, keep: bool) -> bool:
    if not _is_idle(wrapper):
        _drop(wrapper)
        return False
    is_old = wrapper.close_at is not None and wrapper.close_at <= time.monotonic()
    # the method of the class: a task may have replaced that of the object
    if (is_old and not keep) or (wrapper.errors_occurred and not type(wrapper).is_usable(wrapper)):
        _drop(wrapper)
        return False
    if wrapper.vendor != "postgresql" or not get_settings().reset_connections:
        return True
    if get_settings().pooler:  # the server's session is not this connection's
        _drop(wrapper)
        return False
    raw = wrapper.connection
    raw.execute("DISCARD ALL")
    # with what Django's object says of the session (hooks, wrappers, a schema) it is discarded, too
    fresh = connections.create_connection(wrapper.alias)
    fresh.connection = raw
    fresh.autocommit = wrapper.autocommit
    fresh.close_at = wrapper.close_at
    fresh.health_check_enabled = wrapper.settings_dict["CONN_HEALTH_CHECKS"]  # type: ignore[attr-defined]
    fresh.init_connection_state()
    connections[wrapper.alias] = fresh
    # what a project sets in each new session is gone, too
    connection_created.send(sender=type(fresh), connection=fresh)
    return True


def _is_idle(wrapper: BaseDatabaseWrapper) -> bool:
    """Whether a connection is open, outside of any block, and could serve another run."""
    raw = wrapper.connection
    if raw is None or wrapper.atomic_blocks or _lost_autocommit(wrapper):
        return False
    if wrapper.vendor != "postgresql":
        return True
    if raw.closed or raw.info.transaction_status != TransactionStatus.IDLE:
        return False
    if raw.row_factory is not tuple_row or raw.read_only is not None or raw.deferrable is not None:
        return False
    return raw.prepare_threshold is None  # else psycopg prepares, and would not know of the reset


def _drop(wrapper: BaseDatabaseWrapper) -> None:
    """Close a connection and forget its object: the next use makes another one."""
    raw = wrapper.connection
    if wrapper in connections.all(initialized_only=True):
        del connections[wrapper.alias]
    if raw is None:
        return
    try:
        pool = getattr(raw, "_pool", None)
        if pool is not None and raw.info.transaction_status == TransactionStatus.IDLE:
            if get_settings().reset_connections:
                raw.execute("DISCARD ALL")
        else:
            _close(raw)
        if pool is not None:
            pool.putconn(raw)
    except Exception:
        logger.exception("closing a connection to %r failed", wrapper.alias)


def _close(raw: Any) -> None:
    """Close a raw connection, unless another thread is using it: that would crash the process."""
    lock = getattr(raw, "lock", None)
    if lock is None:
        raw.close()
    elif lock.acquire(blocking=False):
        try:
            raw.close()
        finally:
            lock.release()
