"""The transactions in which gates are locked, and slots of tasks are taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connections, transaction

from ..queries.base import LOCK_MILLISECONDS, Where

READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


@contextmanager
def gate_transaction(where: Where) -> Iterator[None]:
    """Open a READ COMMITTED transaction, or a savepoint in the one that Django has open.

    It waits LOCK_MILLISECONDS at most for a lock, and raises the error of one that it did not get.
    """
    limit = f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}"
    if isinstance(where, psycopg.Connection):
        with where.pipeline(), where.transaction():
            where.execute(READ_COMMITTED.encode())
            where.execute(limit.encode())
            yield
    else:
        with transaction.atomic(using=where):
            set_up(where, READ_COMMITTED, limit)
            yield


def set_up(using: str, *settings: str) -> None:
    """Run SET statements in the open transaction of Django, unless a caller has begun it."""
    if len(connections[using].savepoint_ids) == 0:
        with connections[using].cursor() as cursor:
            for setting in settings:
                cursor.execute(setting)
