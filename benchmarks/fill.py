"""Rows by the million, put in by SQL: a backlog that waits, and a history of months."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any

import psycopg

from django_tenantqueue.operations import history

from .bench import Bench
from .bench_app import tasks

MONTHS = 6
"""Number of leaves that share the history, this month's included."""
CHUNK = 250_000
PRIORITY = 240

WAITING = f"""
INSERT INTO tenantqueue_job_hot (
    id, queue_id, lane, priority, is_async, max_attempts, task, source_type, source_method, args
)
SELECT
    nextval('tenantqueue_job_id_seq'), given.queue_id, {PRIORITY}, {PRIORITY}, true, 5,
    %(task)s, 'task', %(task)s, '{{"args": []}}'
FROM unnest(%(queues)s::integer[]) WITH ORDINALITY AS given (queue_id, place)
CROSS JOIN generate_series(1, %(each)s::integer) AS round
ORDER BY round, given.place
"""
"""Jobs of all queues, in turns: their ids are mixed, as in life."""

ENDED = f"""
INSERT INTO {{leaf}} (
    id, run_at, created_at, queued_at, started_at, finished_at, worker_id, queue_id, claim_seq,
    lane, priority, attempt, max_attempts, final, is_async, state, task, source_type,
    source_method, args, errors
)
SELECT
    ended.id, ended.at, ended.at, ended.at, ended.at, ended.at, 0, 1 + ended.id %% 1000, 1,
    {PRIORITY}, {PRIORITY}, 1, 5, true, true,
    CASE WHEN ended.id %% 100 = 0 THEN 'error' ELSE 'success' END,
    %(task)s, 'task', %(task)s, '{{{{"args": []}}}}',
    CASE WHEN ended.id %% 100 = 0 THEN
        jsonb_build_array(jsonb_build_object('class', 'ValueError', 'message', 'it failed'))
    END
FROM (
    SELECT
        id,
        %(start)s::timestamptz
            + (%(end)s::timestamptz - %(start)s::timestamptz)
            * (id - %(first)s)::float8 / %(rows)s AS at
    FROM generate_series(%(from)s::bigint, %(to)s::bigint) AS id
) ended
"""


def add_waiting(connection: psycopg.Connection[Any], queues: list[int], each: int) -> int:
    """Put `each` jobs that do nothing into each of the queues; return how many that made."""
    name = tasks.noop_async.name
    made = connection.execute(
        WAITING.encode(), {"queues": queues, "each": each, "task": name}, prepare=True
    )
    return made.rowcount


def make_history(bench: Bench, rows: int) -> None:
    """Fill the leaves of the last months evenly with ended jobs, one in a hundred in error."""
    months = _months(MONTHS)
    have = {leaf.month for leaf in history.list_leaves("default")}
    for month in months:
        if month not in have:
            history.make_leaf("default", month)
    each = rows // len(months)
    # The ids lie below those of the jobs that are still to come.
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: _fill_leaf(bench, months[n], 1 + n * each, each), range(MONTHS)))
    bench.db.execute("SELECT setval('tenantqueue_job_id_seq', %s)", [MONTHS * each + 1])
    bench.db.execute("VACUUM (ANALYZE) tenantqueue_job_history")


def _months(count: int) -> list[date]:
    """Return the first days of the last `count` months, the oldest first."""
    today = datetime.now(UTC).date()
    now = today.year * 12 + today.month - 1
    return [date(n // 12, n % 12 + 1, 1) for n in range(now - count + 1, now + 1)]


def _fill_leaf(bench: Bench, month: date, first: int, rows: int) -> None:
    start = datetime(month.year, month.month, 1, tzinfo=UTC)
    after = history.next_month(month)
    # Nothing has ended in the future.
    end = min(datetime(after.year, after.month, 1, tzinfo=UTC), datetime.now(UTC))
    statement = ENDED.format(leaf=history.leaf_name(month)).encode()
    with bench.connect() as connection:
        for begin in range(first, first + rows, CHUNK):
            connection.execute(
                statement,
                {
                    "task": tasks.noop_async.name,
                    "start": start,
                    "end": end,
                    "first": first,
                    "rows": rows,
                    "from": begin,
                    "to": min(begin + CHUNK, first + rows) - 1,
                },
            )
