"""Bulk actions with real workers: stopped by an operator, and taken over after a death."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from django_tenantqueue import bulk
from django_tenantqueue.models import Change, Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.states import State
from tests.factories import make_jobs

from .workers import Workers, make_queue, wait_for_state, wait_until

LOCK = 731
"""Advisory lock that a batch waits for."""


@contextmanager
def each_update_of_an_entry(statement: str) -> Iterator[None]:
    """Run a statement in each batch but the first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION tq_test_hold() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN PERFORM {statement}; RETURN NEW; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER tq_test_hold BEFORE UPDATE ON tenantqueue_change "
            "FOR EACH ROW EXECUTE FUNCTION tq_test_hold()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER tq_test_hold ON tenantqueue_change")
            cursor.execute("DROP FUNCTION tq_test_hold()")


@pytest.fixture
def queue(workers: Workers) -> TenantQueue:
    return make_queue("acme", paused=True)


def count_ready(queue: TenantQueue) -> int:
    return Job.objects.filter(queue=queue, state=State.READY, final=False).count()


def test_action_stops_between_batches_when_it_is_cancelled(workers: Workers, queue: TenantQueue):
    make_jobs(queue, 20_000, state=State.ERROR)
    with each_update_of_an_entry("pg_sleep(0.2)"):
        workers.start(settings={"CANCEL_GRACE": 60.0})
        job = bulk.start("retry", {"state": "error"})
        wait_until(Change.objects.exists, what="a batch is done")

        assert control.cancel([job.pk], recorded=False) == ([], [job.pk])

        wait_for_state(job, State.CANCELLED)
    done = count_ready(queue)
    assert 0 < done < 20_000
    assert done % 1000 == 0
    said = re.sub(r"\D", "", job.last_error["message"])
    assert int(said) == done == Change.objects.get().object_count


def test_action_goes_on_when_its_worker_was_killed(workers: Workers, queue: TenantQueue):
    ids = make_jobs(queue, 3500, state=State.ERROR)
    with each_update_of_an_entry(f"pg_advisory_xact_lock({LOCK})"), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        runner = workers.start()
        job = bulk.start("retry", {"state": "error"})
        wait_until(lambda: is_waited_for(LOCK), what="the second batch is half done")
        assert count_ready(queue) == 1000

        runner.children()[0].kill()
        # those of the first batch fail again meanwhile
        control.cancel(ids[-1000:], recorded=False)
        cursor.execute(
            "UPDATE tenantqueue_job_history SET state = 'error' WHERE NOT state = 'error'"
        )
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        wait_for_state(job, State.SUCCESS)

    assert job.attempt == 2
    assert job.result == {"changed": 3500, "left": {}}
    assert Change.objects.get(object_kind=Change.Kind.JOB).object_count == 3500
    assert count_ready(queue) == 2500  # none was retried twice
    assert job.progress_done == job.progress_total == 3500


def is_waited_for(lock: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s "
            "AND NOT granted",
            [lock],
        )
        return bool(cursor.fetchone()[0])
