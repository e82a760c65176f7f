"""Old and new code side by side: the schema grows under running workers."""

import signal

import pytest
from django.db import connection

from django_tenantqueue.states import State
from tests.testapp.tasks import async_noop, fail, noop

from .tasks import write_slowly
from .workers import Workers, wait_for_end

GROWN = ("tenantqueue_job", "tenantqueue_tenantqueue", "tenantqueue_worker")


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.fixture
def grown_schema():
    """Yield what adds a column to each table, as a later release may; take them away at the end."""

    def grow() -> None:
        for table in GROWN:
            execute(f"ALTER TABLE {table} ADD COLUMN of_a_later_release integer")

    yield grow
    for table in GROWN:
        execute(f"ALTER TABLE {table} DROP COLUMN IF EXISTS of_a_later_release")


def assert_all_end() -> None:
    states = [job.state for job in wait_for_end(enqueue_all_kinds())]
    assert states.count(State.SUCCESS) == 45
    assert states.count(State.ERROR) == 1


def enqueue_all_kinds() -> list[int]:
    """Enqueue jobs that succeed, fail and retry, blocking, coroutine and atomic ones."""
    ids = noop.enqueue_many([()] * 20) + async_noop.enqueue_many([()] * 20)
    ids += write_slowly.enqueue_many([("note", 1.0)] * 5)
    return [*ids, fail.using(max_attempts=2).delay().pk]


def test_running_worker_goes_on_when_a_migration_adds_columns(workers: Workers, grown_schema):
    runner = workers.start()
    child = runner.children()[0].pid
    wait_for_end(enqueue_all_kinds())

    grown_schema()
    assert_all_end()
    assert runner.children()[0].pid == child
    newer = workers.start()
    assert_all_end()
    runner.send(signal.SIGTERM)
    assert_all_end()

    assert runner.end() == 0
    assert newer.process.poll() is None
    for output in (runner.output, newer.output):
        assert "must not change result type" not in output
