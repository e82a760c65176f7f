"""The planner learns in time how large the tables are that it plans for."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection

from django_tenantqueue import Unique
from django_tenantqueue.operations import maintain
from tests.factories import make_jobs, make_queue
from tests.testapp.tasks import noop

HOT = "tenantqueue_job_hot"
KEYS = "tenantqueue_uniquekey"


@pytest.fixture(autouse=True)
def small_tables(transactional_db):
    """Have the planner see the tables as they are when they are almost empty."""
    empty()
    yield
    empty()


def empty() -> None:
    with connection.cursor() as cursor:  # VACUUM would leave the pages of what others have deleted
        cursor.execute("TRUNCATE tenantqueue_job, tenantqueue_uniquekey")
    vacuum()


def vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM ANALYZE {HOT}, {KEYS}")


def pages_seen(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpages FROM pg_class WHERE oid = %s::regclass", [table])
        return cursor.fetchone()[0]


def plan(session: psycopg.Connection) -> str:
    return "\n".join(row[0] for row in session.execute("EXPLAIN EXECUTE find_job (1)"))


def test_kept_plan_is_made_anew_when_its_table_has_grown(open_connection):
    queue = make_queue()
    make_jobs(queue, 10)
    vacuum()
    session = open_connection()
    session.execute("RESET ALL")
    session.execute("SET plan_cache_mode = force_generic_plan")
    session.execute(f"PREPARE find_job (bigint) AS SELECT FROM {HOT} WHERE id = $1")
    assert "Seq Scan" in plan(session)
    make_jobs(queue, 5000)
    assert "Seq Scan" in plan(session)

    assert maintain.refresh_statistics("default") == [HOT]

    assert "Seq Scan" not in plan(session)
    assert maintain.refresh_statistics("default") == []


def test_table_of_keys_is_seen_when_it_has_grown():
    numbers = iter(range(10_000))
    task = noop.using(unique=Unique("until_executed", key=lambda: f"k{next(numbers)}"))
    task.enqueue_many([()] * 10_000)

    assert maintain.refresh_statistics("default") == [HOT, KEYS]


def test_table_is_left_alone_when_it_is_small():
    make_jobs(make_queue(), 300)

    assert maintain.refresh_statistics("default") == []


def test_table_is_left_for_later_when_autovacuum_is_at_it(open_connection):
    make_jobs(make_queue(), 5000)
    before = pages_seen(HOT)
    vacuuming = open_connection()
    with vacuuming.transaction():
        vacuuming.execute(f"LOCK TABLE {HOT} IN SHARE UPDATE EXCLUSIVE MODE")
        assert maintain.refresh_statistics("default") == [HOT]
        assert pages_seen(HOT) == before

    assert maintain.refresh_statistics("default") == [HOT]
    assert pages_seen(HOT) > before
