"""Two installations share a database, each in a schema of its own, and do not meet."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.test import override_settings

from django_tenantqueue.models import Duty, Job, Worker
from django_tenantqueue.states import State
from tests.databases import other_database, settings_of, url_of_schema

from .tasks import hold, look
from .workers import Gate, Runner, Workers, wait_for_state, wait_until

SCHEMAS = ("production", "staging")


@pytest.fixture
def schemas(transactional_db: None, server_url: str) -> Iterator[dict[str, str]]:
    """Yield the URLs of the installations, by the names of their schemas and aliases."""
    urls = {schema: url_of_schema(server_url, "two_schemas", schema) for schema in SCHEMAS}
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE two_schemas")
    try:
        with ExitStack() as stack:
            for schema in SCHEMAS:
                stack.enter_context(other_database(schema, settings_of(urls[schema])))
                with connections[schema].cursor() as cursor:
                    cursor.execute(f"CREATE SCHEMA {schema}")
                call_command("migrate", database=schema, verbosity=0)
            yield urls
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP DATABASE two_schemas WITH (FORCE)")


@contextmanager
def inside(schema: str) -> Iterator[None]:
    with override_settings(TENANTQUEUE={"DATABASE": schema}):
        yield


def started(workers: Workers, schemas: dict[str, str], schema: str) -> Runner:
    """Start a worker of an installation; return it when its child has signed on."""
    runner = workers.launch("--processes=1", database_url=schemas[schema])
    row = Worker.objects.using(schema).filter(name__startswith=f"{runner.name}.", pid__gt=0)
    wait_until(row.exists, what=f"{runner.name} has signed on")
    return runner


def enqueued(schema: str, task: object, gate: Gate, **options: object) -> Job:
    with inside(schema):
        return task.using(**options).delay(str(gate))


def attempts(schema: str, job: Job) -> int:
    return Job.objects.using(schema).get(pk=job.pk).attempt


def kill(runner: Runner) -> None:
    os.killpg(runner.process.pid, signal.SIGKILL)
    runner.process.wait()


def test_each_installation_rescues_its_own_jobs_when_their_worker_is_killed(
    workers: Workers, schemas: dict[str, str], tmp_path
):
    gates = {schema: Gate(tmp_path / schema) for schema in SCHEMAS}
    first = {schema: started(workers, schemas, schema) for schema in SCHEMAS}
    jobs = {schema: enqueued(schema, hold, gates[schema]) for schema in SCHEMAS}
    ids = [list(Worker.objects.using(schema).values_list("pk", flat=True)) for schema in SCHEMAS]
    assert ids[0] == ids[1]
    for schema in SCHEMAS:
        gates[schema].wait_for(jobs[schema])

    for schema, other in (SCHEMAS, SCHEMAS[::-1]):
        attempt = attempts(other, jobs[other])
        kill(first[schema])
        first[schema] = started(workers, schemas, schema)
        gates[schema].wait_for(jobs[schema], attempt=2)
        assert attempts(other, jobs[other]) == attempt

    for schema in SCHEMAS:
        gates[schema].open()
        with inside(schema):
            assert wait_for_state(jobs[schema], State.SUCCESS).attempt == 2


def test_each_installation_has_its_maintenance_and_its_retries(
    workers: Workers, schemas: dict[str, str], tmp_path
):
    gates = {schema: Gate(tmp_path / schema) for schema in SCHEMAS}
    for schema in SCHEMAS:
        started(workers, schemas, schema)
    jobs = {schema: enqueued(schema, look, gates[schema], max_attempts=9) for schema in SCHEMAS}
    for schema in SCHEMAS:
        with inside(schema):
            wait_for_state(jobs[schema], State.SCHEDULED)
        gates[schema].open()

    for schema in SCHEMAS:
        with inside(schema):
            wait_for_state(jobs[schema], State.SUCCESS)
        assert Duty.objects.using(schema).filter(name="promote").exists()
