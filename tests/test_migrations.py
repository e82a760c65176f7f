"""Migrations of live tables: they go back and forth, and can be run again when interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import date

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.core.management import call_command
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import CreateModel, RunPython, RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from django_tenantqueue.migrations._base import PostgresMigration
from django_tenantqueue.operations import history
from django_tenantqueue.worker.connection import connect
from tests.process.workers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
FIREWORQ = "tenantqueue_fireworq"
INDEXED = ("ended", "pushed")
INDEXES = """
    SELECT leaf.relname, x.indisvalid
    FROM pg_inherits part
    JOIN pg_index x ON x.indexrelid = part.inhrelid
    JOIN pg_class leaf ON leaf.oid = x.indrelid
    WHERE part.inhparent = to_regclass(%s)
"""


@pytest.fixture
def without_fireworq() -> Iterator[None]:
    call_command("migrate", FIREWORQ, "zero", verbosity=0)
    yield
    call_command("migrate", FIREWORQ, verbosity=0)


def indexed(index: str) -> dict[str, bool]:
    """Return the leaves whose index is attached, and whether it is valid."""
    with connection.cursor() as cursor:
        cursor.execute(INDEXES, [f"tenantqueue_history_{index}"])
        return dict(cursor.fetchall())


def leaves() -> set[str]:
    return {leaf.name for leaf in history.list_leaves("default")} | {history.DEFAULT_LEAF}


@pytest.mark.usefixtures("without_fireworq")
def test_every_leaf_gets_the_indexes_of_an_app_when_the_history_exists():
    assert not any(map(indexed, INDEXED))

    call_command("migrate", FIREWORQ, verbosity=0)

    for index in INDEXED:
        assert indexed(index) == dict.fromkeys(leaves(), True)


@pytest.mark.usefixtures("without_fireworq")
def test_migration_is_finished_when_it_was_interrupted():
    with connection.cursor() as cursor:
        for statement in (
            "CREATE INDEX tenantqueue_job_deferred ON tenantqueue_job_hot (id)",
            *(
                f"CREATE INDEX {history.DEFAULT_LEAF}_{index} ON {history.DEFAULT_LEAF} (id)"
                for index in INDEXED
            ),
        ):
            cursor.execute(statement)

    call_command("migrate", FIREWORQ, verbosity=0)

    for index in INDEXED:
        assert indexed(index) == dict.fromkeys(leaves(), True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef('tenantqueue_job_deferred'::regclass)")
        assert "(queue_id, run_at, id)" in cursor.fetchone()[0]


def test_new_month_gets_the_index_when_it_is_made():
    month = date(2099, 1, 1)
    history.make_leaf("default", month)

    try:
        for index in INDEXED:
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


class Later(PostgresMigration):
    """A migration of a table that workers use."""

    operations = [
        RunSQL(
            "ALTER TABLE tenantqueue_worker ADD COLUMN later int",
            "ALTER TABLE tenantqueue_worker DROP COLUMN later",
        )
    ]


def apply_later() -> None:
    with connection.schema_editor() as editor:
        Later("0002_later", "tenantqueue").apply(ProjectState(), editor)


def undo_later() -> None:
    with connection.schema_editor() as editor:
        Later("0002_later", "tenantqueue").unapply(ProjectState(), editor)


def add_fireworq() -> None:
    call_command("migrate", FIREWORQ, verbosity=0)


def remove_fireworq() -> None:
    call_command("migrate", FIREWORQ, "zero", verbosity=0)


@pytest.mark.parametrize(
    ("before", "migrate", "after", "table", "held"),
    [
        (remove_fireworq, add_fireworq, None, "tenantqueue_job_history", "ROW EXCLUSIVE"),
        (None, remove_fireworq, add_fireworq, "tenantqueue_job_history", "ACCESS SHARE"),
        (None, apply_later, undo_later, "tenantqueue_worker", "ACCESS SHARE"),
        (apply_later, undo_later, None, "tenantqueue_worker", "ACCESS SHARE"),
    ],
)
def test_migration_lets_others_through_while_a_table_is_in_use(
    before: Callable[[], None] | None,
    migrate: Callable[[], None],
    after: Callable[[], None] | None,
    table: str,
    held: str,
):
    errors: list[BaseException] = []

    def run() -> None:
        try:
            migrate()
        except BaseException as error:  # noqa: BLE001 - the test raises it
            errors.append(error)
        finally:
            connections.close_all()

    if before is not None:
        before()
    thread = threading.Thread(target=run)
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
        if after is not None:
            after()

    assert errors == []


def test_every_migration_waits_for_no_lock_for_long():
    disk = MigrationLoader(None).disk_migrations
    ours = [migration for (app, _), migration in disk.items() if app.startswith("tenantqueue")]

    assert len(ours) > 6
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
