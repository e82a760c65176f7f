"""Whether a transaction pooler stands between Django and the server."""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper


def is_transaction_pooler(alias: str) -> bool:
    """Whether the connections of `alias` get another session with each transaction.

    A pooler gives each client a number of its own in place of the server's process id. When the
    numbers differ, a second connection distinguishes the kinds: only a transaction pooler gives it
    the session of the first, which is open too.
    """
    first = connections[alias]
    session = _session(first)
    if first.in_atomic_block or session == _told(first):
        return False
    second = first.copy()
    try:
        return any(
            _session(second) == session or _session(first) != session for _ in range(3)
        )  # another client may come in between
    finally:
        second.close()


def _session(wrapper: BaseDatabaseWrapper) -> int:
    """Return the process id of the session, as the server itself says."""
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _told(wrapper: BaseDatabaseWrapper) -> int:
    """Return the process id that the server sent when the connection was opened."""
    raw: Any = wrapper.connection
    return int(raw.info.backend_pid)
