"""Migrations of live tables: they go back and forth, and can be run again when interrupted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import CreateModel, RunPython, RunSQL
from django.db.migrations.operations.base import Operation

from django_tenantqueue.migrations._base import PostgresMigration
from django_tenantqueue.models import Job
from django_tenantqueue.operations import history
from django_tenantqueue.worker.connection import connect
from tests.process.workers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
OF_FAILURES = ("errors", "ended", "pushed")
INDEXES = """
    SELECT leaf.relname, x.indisvalid
    FROM pg_inherits part
    JOIN pg_index x ON x.indexrelid = part.inhrelid
    JOIN pg_class leaf ON leaf.oid = x.indrelid
    WHERE part.inhparent = to_regclass(%s)
"""


@pytest.fixture
def before_failures() -> Iterator[None]:
    call_command("migrate", "tenantqueue", "0003", verbosity=0)
    yield
    call_command("migrate", "tenantqueue", verbosity=0)


def indexed(index: str = "errors") -> dict[str, bool]:
    """Return the leaves whose index is attached, and whether it is valid."""
    with connection.cursor() as cursor:
        cursor.execute(INDEXES, [f"tenantqueue_history_{index}"])
        return dict(cursor.fetchall())


def leaves() -> set[str]:
    return {leaf.name for leaf in history.list_leaves("default")} | {history.DEFAULT_LEAF}


@pytest.mark.usefixtures("before_failures")
def test_every_leaf_gets_the_indexes_of_failures_when_the_history_exists():
    assert not any(map(indexed, OF_FAILURES))

    call_command("migrate", "tenantqueue", verbosity=0)

    for index in OF_FAILURES:
        assert indexed(index) == dict.fromkeys(leaves(), True)


@pytest.mark.usefixtures("before_failures")
def test_migration_is_finished_when_it_was_interrupted():
    with connection.cursor() as cursor:
        for statement in (
            "CREATE INDEX tenantqueue_figure_groups ON tenantqueue_figure (name)",
            "CREATE INDEX tenantqueue_job_errors ON tenantqueue_job_hot (id)",
            "CREATE INDEX tenantqueue_job_deferred ON tenantqueue_job_hot (id)",
            *(
                f"CREATE INDEX {history.DEFAULT_LEAF}_{index} ON {history.DEFAULT_LEAF} (id)"
                for index in OF_FAILURES
            ),
        ):
            cursor.execute(statement)

    call_command("migrate", "tenantqueue", verbosity=0)

    for index in OF_FAILURES:
        assert indexed(index) == dict.fromkeys(leaves(), True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef('tenantqueue_job_errors'::regclass)")
        assert "tenantqueue_error_class" in cursor.fetchone()[0]
        cursor.execute("SELECT pg_get_indexdef('tenantqueue_job_deferred'::regclass)")
        assert "(queue_id, run_at, id)" in cursor.fetchone()[0]


def test_new_month_gets_the_index_when_it_is_made():
    month = date(2099, 1, 1)
    history.make_leaf("default", month)

    try:
        for index in OF_FAILURES:
            assert indexed(index)[history.leaf_name(month)] is True
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {history.leaf_name(month)}")


WAITS = """
    SELECT FROM pg_locks
    WHERE NOT granted AND relation = %s::regclass AND database = (
        SELECT oid FROM pg_database WHERE datname = current_database()
    )
"""


@pytest.mark.parametrize(
    ("before", "is_undone", "table", "held"),
    [
        ("0003", False, "tenantqueue_job_history", "ROW EXCLUSIVE"),  # CREATE INDEX
        ("0004", False, "tenantqueue_worker", "ACCESS SHARE"),  # AddField
        ("0015", False, "tenantqueue_tenantqueue", "ACCESS SHARE"),  # AddConstraint, too
        ("0016", False, "tenantqueue_job", "ACCESS SHARE"),  # RunSQL
        ("0017", True, "tenantqueue_job_history", "ACCESS SHARE"),  # DROP INDEX
    ],
)
def test_migration_lets_others_through_while_a_table_is_in_use(
    before: str, is_undone: bool, table: str, held: str
):
    def migrate() -> None:
        try:
            call_command("migrate", "tenantqueue", *[before] * is_undone, verbosity=0)
        finally:
            connections.close_all()

    if not is_undone:
        call_command("migrate", "tenantqueue", before, verbosity=0)
    thread = threading.Thread(target=migrate)
    try:
        with connect("default", "reader") as reader, connect("default", "other") as other:
            reader.execute("BEGIN")
            reader.execute(f"LOCK TABLE {table} IN {held} MODE")
            thread.start()
            wait_until(lambda: other.execute(WAITS, [table]).rowcount)
            other.execute("SET lock_timeout = '5s'")
            with other.transaction():
                other.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
            assert thread.is_alive()
    finally:
        thread.join()
        call_command("migrate", "tenantqueue", verbosity=0)

    assert not Job.objects.filter(follow_ups__isnull=False).exists()


def test_every_migration_waits_for_no_lock_for_long():
    disk = MigrationLoader(None).disk_migrations
    ours = [migration for (app, _), migration in disk.items() if app == "tenantqueue"]

    assert len(ours) > 10
    for migration in ours:
        assert isinstance(migration, PostgresMigration)
        if not migration.atomic:  # each operation is a transaction of its own, without a guard
            for operation in migration.operations:
                assert is_without_locks(operation), (migration, operation)


def is_without_locks(operation: Operation) -> bool:
    """Whether it takes no lock that others wait for, or guards itself, as add_indexes() does."""
    match operation:
        case RunPython():
            return operation.code.__module__ == "django_tenantqueue.migrations._indexes"
        case RunSQL():
            text = str(operation.sql)
            return "REPLACE FUNCTION" in text or "CONCURRENTLY" in text
        case AddIndexConcurrently() | RemoveIndexConcurrently():
            return True
        case CreateModel():
            keys = (field for _, field in operation.fields if field.remote_field)
            return not any(key.db_constraint for key in keys)
    return False
