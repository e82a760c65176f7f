"""Migrations of live tables: they go back and forth, and can be run again when interrupted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date

import pytest
from django.core.management import call_command
from django.db import connection, connections

from django_tenantqueue.models import Job
from django_tenantqueue.operations import history
from django_tenantqueue.worker.connection import connect
from tests.process.workers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
INDEXES = """
    SELECT leaf.relname, x.indisvalid
    FROM pg_inherits part
    JOIN pg_index x ON x.indexrelid = part.inhrelid
    JOIN pg_class leaf ON leaf.oid = x.indrelid
    WHERE part.inhparent = to_regclass('tenantqueue_history_errors')
"""
SLEEPS = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


@pytest.fixture
def before_failures() -> Iterator[None]:
    call_command("migrate", "tenantqueue", "0003", verbosity=0)
    yield
    call_command("migrate", "tenantqueue", verbosity=0)


def indexed() -> dict[str, bool]:
    """Return the leaves whose index is attached, and whether it is valid."""
    with connection.cursor() as cursor:
        cursor.execute(INDEXES)
        return dict(cursor.fetchall())


def leaves() -> set[str]:
    return {leaf.name for leaf in history.list_leaves("default")} | {history.DEFAULT_LEAF}


@pytest.mark.usefixtures("before_failures")
def test_every_leaf_gets_the_index_of_failures_when_the_history_exists():
    assert not indexed()

    call_command("migrate", "tenantqueue", verbosity=0)

    assert indexed() == dict.fromkeys(leaves(), True)


@pytest.mark.usefixtures("before_failures")
def test_migration_is_finished_when_it_was_interrupted():
    with connection.cursor() as cursor:
        for statement in (
            "CREATE INDEX tenantqueue_figure_groups ON tenantqueue_figure (name)",
            "CREATE INDEX tenantqueue_job_errors ON tenantqueue_job_hot (id)",
            f"CREATE INDEX {history.DEFAULT_LEAF}_errors ON {history.DEFAULT_LEAF} (id)",
        ):
            cursor.execute(statement)

    call_command("migrate", "tenantqueue", verbosity=0)

    assert indexed() == dict.fromkeys(leaves(), True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef('tenantqueue_job_errors'::regclass)")
        assert "tenantqueue_error_class" in cursor.fetchone()[0]


def test_new_month_gets_the_index_when_it_is_made():
    month = date(2099, 1, 1)
    history.make_leaf("default", month)

    try:
        assert indexed()[history.leaf_name(month)] is True
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {history.leaf_name(month)}")


@pytest.fixture
def before_follow_ups() -> Iterator[None]:
    call_command("migrate", "tenantqueue", "0012", verbosity=0)
    yield
    call_command("migrate", "tenantqueue", verbosity=0)


@pytest.mark.usefixtures("before_follow_ups")
def test_migration_of_follow_ups_lets_others_through_while_the_table_is_in_use():
    def migrate() -> None:
        try:
            call_command("migrate", "tenantqueue", verbosity=0)
        finally:
            connections.close_all()

    with connect("default", "reader") as reader, connect("default", "other") as other:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tenantqueue_job")
        thread = threading.Thread(target=migrate)
        thread.start()
        wait_until(lambda: other.execute(SLEEPS).rowcount)
        other.execute("SET lock_timeout = '5s'")
        other.execute("UPDATE tenantqueue_job_hot SET priority = 1 WHERE false")
        assert thread.is_alive()
        reader.execute("ROLLBACK")
        thread.join()

    assert not Job.objects.filter(follow_ups__isnull=False).exists()
