"""Connections that break while jobs run cost no job, and no job runs twice for it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from django.db import connection
from psycopg import sql

from django_tenantqueue.models import Duty, Job
from django_tenantqueue.states import State
from tests.testapp.models import Effect
from tests.testapp.tasks import noop

from .proxy import How, New, Proxy
from .tasks import async_hold, hold, write_slowly
from .workers import Gate, Workers, make_queue, wait_for_end, wait_until

TERMINATE = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
"""

ALLOW = "ALTER DATABASE {} ALLOW_CONNECTIONS {}"


def terminate_backends() -> int:
    """End all connections to the database but this one."""
    with connection.cursor() as cursor:
        cursor.execute(TERMINATE)
        return cursor.fetchone()[0]


def test_running_jobs_succeed_once_when_connections_are_terminated(workers: Workers, gate: Gate):
    runner = workers.start(processes=2)
    jobs = [
        *(hold.using(max_attempts=1).delay(str(gate)) for _ in range(3)),
        async_hold.using(max_attempts=1).delay(str(gate)),
    ]
    gate.wait_for(*jobs)
    children = {child.pid for child in runner.children()}

    assert terminate_backends() >= 3
    gate.open()
    ended = wait_for_end(job.pk for job in jobs)
    later = wait_for_end([noop.delay().pk])

    assert [(job.state, job.attempt) for job in [*ended, *later]] == [(State.SUCCESS, 1)] * 5
    assert {child.pid for child in runner.children()} == children


def test_an_idle_worker_goes_on_when_its_connections_are_terminated(workers: Workers):
    runner = workers.start(processes=2)
    wait_for_end([noop.delay().pk])
    children = {child.pid for child in runner.children()}

    assert terminate_backends() >= 3
    ids = noop.enqueue_many([()] * 50)

    assert {job.state for job in wait_for_end(ids)} == {State.SUCCESS}
    assert {child.pid for child in runner.children()} == children


@pytest.fixture
def closed_database(database_url: str) -> Iterator[Callable[[str], None]]:
    """Yield what ends the connections of one worker, by its name, and lets nobody connect."""
    database = sql.Identifier(connection.settings_dict["NAME"])
    with psycopg.connect(database_url, dbname="postgres", autocommit=True) as elsewhere:

        def close(name: str) -> None:
            elsewhere.execute(sql.SQL(ALLOW).format(database, sql.SQL("false")))
            with connection.cursor() as cursor:
                cursor.execute(TERMINATE + "AND application_name LIKE %s", [f"tenantqueue {name}%"])

        yield close
        elsewhere.execute(sql.SQL(ALLOW).format(database, sql.SQL("true")))


def test_children_are_dead_before_their_jobs_run_elsewhere_when_they_cannot_connect(
    workers: Workers, gate: Gate, tmp_path: Path, closed_database: Callable[[str], None]
):
    busy = Gate(tmp_path / "busy")
    other = workers.start("--threads=1")  # it leads, and is connected
    first_held = hold.delay(str(busy))
    busy.wait_for(first_held)
    wait_until(lambda: Duty.objects.filter(name="rescue", worker=other.name).exists())
    cut_off = workers.start("--no-maintenance")
    job = hold.using(max_attempts=2).delay(str(gate))
    gate.wait_for(job)
    (child,) = cut_off.children()

    closed_database(cut_off.name)
    busy.open()
    gate.wait_for(job, attempt=2)

    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert "the database has not confirmed" in cut_off.output
    assert other.process.poll() is None


@pytest.mark.heavy
def test_no_job_is_lost_when_connections_are_terminated_under_load(workers: Workers):
    make_queue("acme", num_slots=1000)
    runner = workers.start(processes=2)
    ids: list[int] = []
    for _ in range(4):
        before = Job.objects.filter(pk__in=ids, final=True).count()
        ids += noop.using(tenant="acme").enqueue_many([()] * 3000)
        done = Job.objects.filter(pk__in=ids, final=True)
        wait_until(lambda done=done, before=before: done.count() > before + 300)
        terminate_backends()
        assert runner.process.poll() is None

    jobs = wait_for_end(ids, timeout=30)

    assert {job.state for job in jobs} == {State.SUCCESS}


@pytest.mark.heavy
def test_effects_happen_once_when_connections_are_terminated_in_atomic_tasks(workers: Workers):
    ids = [
        write_slowly.using(tenant=f"tenant {n % 4}", max_attempts=50).delay("once", 5).pk
        for n in range(200)
    ]
    runner = workers.start(processes=2, settings={"BACKOFF_BASE": 0.05, "BACKOFF_MAX": 0.1})
    done = Job.objects.filter(pk__in=ids, final=True)
    while done.count() < 150:
        before = done.count()
        wait_until(lambda before=before: done.count() >= before + 20)
        terminate_backends()

    jobs = wait_for_end(ids)

    assert runner.process.poll() is None
    assert {job.state for job in jobs} == {State.SUCCESS}
    assert sorted(Effect.objects.values_list("job_id", flat=True)) == ids


def test_jobs_run_when_the_answer_to_their_claim_was_lost(
    workers: Workers, proxies: Callable[[], Proxy]
):
    proxy = proxies()
    runner = workers.start(database_url=proxy.url)
    wait_for_end([noop.delay().pk])

    proxy.cut_at(noop.name.encode(), How.CLOSED, New.PASS, is_lost=True)
    ids = noop.enqueue_many([()] * 5)
    jobs = wait_for_end(ids)

    assert proxy.trap is None  # it was lost
    assert {(job.state, job.attempt) for job in jobs} == {(State.SUCCESS, 1)}
    assert max(job.claim_seq for job in jobs) == 2
    assert f"job {ids[0]} was claimed, but the answer to the claim was lost" in runner.output
