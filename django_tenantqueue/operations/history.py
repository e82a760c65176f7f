"""Partitions of the history: made ahead, dropped when old.

DDL cannot take parameters, so these statements are composed here and not read from sql/. Each
waits at most LOCK_MILLISECONDS for its locks, so that nothing queues up behind it; what timed
out is retried in the next round.

Locks. Attaching a leaf: SHARE UPDATE EXCLUSIVE on the history, which allows inserts, and ACCESS
EXCLUSIVE on its default leaf, which only a reader of all leaves holds up. Emptying a leaf: ACCESS
EXCLUSIVE on that leaf alone. Dropping it: ACCESS EXCLUSIVE on the history for an instant. Each
takes an advisory lock before all else, so that two never make or drop the same leaf at once, which
the catalogue answers with one of several errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import psycopg
from django.db import connections
from psycopg import sql
from psycopg.pq import TransactionStatus

from ..conf import get_settings
from ..features import Feature, hooks
from ..queries.base import LOCK_MILLISECONDS, fetch, ready_connection
from ..queries.locks import KEY, LockKey

HISTORY = "tenantqueue_job_history"
PREFIX = f"{HISTORY}_"
DEFAULT_LEAF = f"{HISTORY}_default"
OTHER_OWNER = """
    SELECT pg_get_userbyid(relowner) FROM pg_class
    WHERE oid = %s::regclass AND pg_get_userbyid(relowner) <> current_user
"""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One month of the history: the jobs that ended from `start` on, and before `end`."""

    name: str
    month: date

    @property
    def start(self) -> datetime:
        return datetime.combine(self.month, time.min, UTC)

    @property
    def end(self) -> datetime:
        return datetime.combine(next_month(self.month), time.min, UTC)


def next_month(month: date) -> date:
    """Return the first day of the month after `month`."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def leaf_name(month: date) -> str:
    """Return the name of the leaf that holds a month."""
    return f"{PREFIX}{month:%Ym%m}"


@contextmanager
def _bounded(using: str) -> Iterator[psycopg.Cursor[Any]]:
    """Yield a cursor in a transaction that alone changes the partitions, as their owner.

    Its statements wait for locks 50 ms at most, and raise psycopg.errors.LockNotAvailable then.
    Raises psycopg.errors.InsufficientPrivilege for a role that is no member of the owner.
    """
    raw = ready_connection(connections[using])
    is_idle = raw.info.transaction_status == TransactionStatus.IDLE
    with raw.transaction(), psycopg.Cursor(raw) as cursor:
        if is_idle:
            # or what was changed while the lock was waited for would not be seen
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}".encode())
        cursor.execute(f"SELECT pg_advisory_xact_lock({KEY})".encode(), [LockKey.HISTORY])
        # what it makes belongs to the one who migrates, and has the default privileges
        if owner := cursor.execute(OTHER_OWNER, [HISTORY]).fetchone():
            cursor.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(owner[0])))
        yield cursor


def _exists(cursor: psycopg.Cursor[Any], name: str) -> bool:
    """Look into the table: to_regclass() may answer with what a session remembers from before."""
    cursor.execute(
        "SELECT FROM pg_class leaf JOIN pg_class history USING (relnamespace) "
        "WHERE history.oid = %s::regclass AND leaf.relname = %s",
        [HISTORY, name],
    )
    return cursor.rowcount > 0


def list_leaves(using: str) -> list[Leaf]:
    """Return the months that have a leaf, the oldest first."""
    rows = psycopg.Cursor(ready_connection(connections[using])).execute(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        "WHERE i.inhparent = %s::regclass AND c.relname <> %s ORDER BY c.relname",
        [HISTORY, DEFAULT_LEAF],
    )
    leaves = []
    for (name,) in rows:
        try:
            month = datetime.strptime(f"{name.removeprefix(PREFIX)}+0000", "%Ym%m%z").date()
        except ValueError:
            continue  # not one of ours
        leaves.append(Leaf(name, month))
    return leaves


def list_stray_months(using: str) -> list[date]:
    """Return some months, at most a year of them, whose rows are in the default leaf."""
    rows = psycopg.Cursor(ready_connection(connections[using])).execute(
        sql.SQL(
            "SELECT DISTINCT date_trunc('month', finished_at AT TIME ZONE 'UTC')::date "
            "FROM {} WHERE finished_at >= '1900-01-01' AND finished_at < '9000-01-01' "
            "ORDER BY 1 LIMIT 12"
        ).format(sql.Identifier(DEFAULT_LEAF))
    )
    return [month for (month,) in rows]


def oldest_kept(keep_months: int | None, now: datetime) -> datetime | None:
    """Return the beginning of the oldest month that is kept; None: all are."""
    if keep_months is None:
        return None
    month = now.year * 12 + now.month - 1 - keep_months
    return datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) if month >= 12 else None


def dropped_whole(using: str, now: datetime | None = None) -> list[Leaf]:
    """Return the months in which no job is kept, the oldest first.

    HISTORY_KEEP_MONTHS decides, unless a feature overrides it. Unfinished monitors keep their
    details.
    """
    moment = now or datetime.now(UTC)
    before = oldest_kept(get_settings().history_keep_months, moment)
    for kept_from in hooks(Feature.history_kept_from):
        before = kept_from(using, moment, before)
    if before is None:
        return []
    old = [leaf for leaf in list_leaves(using) if leaf.end <= before]
    return [leaf for leaf in old if not _has_details_of_unfinished(using, leaf)]


def _has_details_of_unfinished(using: str, leaf: Leaf) -> bool:
    params = {"start": leaf.start, "end": leaf.end}
    return bool(fetch(using, "has_details_of_unfinished", params)[0][0])


def make_leaf(using: str, month: date) -> bool:
    """Make the leaf of a month aside, move stray rows of it out of the default, and attach it.

    Return whether it was missing. Raises psycopg.errors.LockNotAvailable when the default leaf is
    being read, or another session is changing the partitions.
    """
    leaf = Leaf(leaf_name(month), month)
    name = sql.Identifier(leaf.name)
    start, end = sql.Literal(leaf.start.isoformat()), sql.Literal(leaf.end.isoformat())
    history, default = sql.Identifier(HISTORY), sql.Identifier(DEFAULT_LEAF)
    within = sql.SQL("finished_at >= {} AND finished_at < {}").format(start, end)
    with _bounded(using) as cursor:
        if _exists(cursor, leaf.name):
            return False
        cursor.execute(
            sql.SQL(
                "CREATE TABLE {} (LIKE {} INCLUDING DEFAULTS INCLUDING CONSTRAINTS, "
                "CONSTRAINT {} PRIMARY KEY (id), CONSTRAINT {} CHECK (final), "
                "CONSTRAINT {} CHECK ({}))"
            ).format(
                name,
                history,
                sql.Identifier(f"{leaf.name}_pkey"),
                sql.Identifier(f"{leaf.name}_final"),
                sql.Identifier(f"{leaf.name}_range"),
                within,
            )
        )
        cursor.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(default))
        cursor.execute(
            sql.SQL(
                "WITH stray AS (DELETE FROM {} WHERE {} RETURNING *) "
                "INSERT INTO {} SELECT * FROM stray"
            ).format(default, within, name)
        )
        cursor.execute(
            sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
                history, name, start, end
            )
        )
    return True


def empty_leaf(using: str, leaf: Leaf) -> None:
    """Free the space of a leaf, if it is there. Raises LockNotAvailable while it is being read."""
    with _bounded(using) as cursor:
        if not _exists(cursor, leaf.name):
            return
        cursor.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(leaf.name)))


def drop_leaf(using: str, leaf: Leaf) -> bool:
    """Drop an empty leaf; return whether it was there.

    Raises LockNotAvailable while a transaction that finished a job is open.
    """
    with _bounded(using) as cursor:
        if not _exists(cursor, leaf.name):
            return False
        cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(leaf.name)))
    return True
