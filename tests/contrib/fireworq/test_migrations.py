"""Migrations that index a history which exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date

import pytest
from django.core.management import call_command
from django.db import connection

from django_tenantqueue.operations import history
from tests.test_migrations import try_beside_a_lock

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


def add_fireworq() -> None:
    call_command("migrate", FIREWORQ, verbosity=0)


def remove_fireworq() -> None:
    call_command("migrate", FIREWORQ, "zero", verbosity=0)


@pytest.mark.parametrize(
    ("before", "migrate", "after", "held"),
    [
        (remove_fireworq, add_fireworq, None, "ROW EXCLUSIVE"),
        (None, remove_fireworq, add_fireworq, "ACCESS SHARE"),
    ],
)
def test_migration_lets_others_through_while_a_table_is_in_use(
    before: Callable[[], None] | None,
    migrate: Callable[[], None],
    after: Callable[[], None] | None,
    held: str,
):
    try_beside_a_lock(before, migrate, after, "tenantqueue_job_history", held)
