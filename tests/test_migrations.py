"""Migrations of live tables: they go back and forth, and can be run again when interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import CreateModel, RunPython, RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from django_tenantqueue.migrations._base import PostgresMigration
from django_tenantqueue.worker.connection import connect
from tests.process.workers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize(
    ("before", "migrate", "after"),
    [(None, apply_later, undo_later), (apply_later, undo_later, None)],
)
def test_migration_lets_others_through_while_a_table_is_in_use(
    before: Callable[[], None] | None,
    migrate: Callable[[], None],
    after: Callable[[], None] | None,
):
    try_beside_a_lock(before, migrate, after, "tenantqueue_worker", "ACCESS SHARE")


def try_beside_a_lock(
    before: Callable[[], None] | None,
    migrate: Callable[[], None],
    after: Callable[[], None] | None,
    table: str,
    held: str,
) -> None:
    """Migrate while another connection holds a lock, and a third one asks for its own."""
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

    assert ours
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
