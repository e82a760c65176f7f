"""The server is lost while jobs run, and its standby takes over."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from django_tenantqueue.operations.rescue import LOOK_SECONDS
from example_project.postgres import Cluster

from .standby import Standby
from .workers import ROOT, SETTINGS, Gate, Workers, wait_until

PREPARE = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django_tenantqueue.models import TenantQueue
TenantQueue.objects.create(tenant="", name="default", num_slots=100)
"""
ENQUEUE = """
import django; django.setup()
from tests.process.tasks import {task}
{task}.using(max_attempts={attempts}).enqueue_many([({gate!r},)] * {jobs})
"""

Enqueue = Callable[..., None]


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def run(script: str, url: str) -> None:
    env = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, check=True)


@pytest.fixture
def standby(cluster: Cluster) -> Iterator[Standby]:
    run(PREPARE, cluster.start())
    directory = Path(tempfile.mkdtemp(prefix="tenantqueue-"))
    directory.chmod(0o755)
    second = Cluster(directory)
    try:
        yield Standby(cluster, second)
    finally:
        second.destroy()


@pytest.fixture
def enqueue(standby: Standby, gate: Gate) -> Enqueue:
    """Return what enqueues jobs that hold, on whichever server takes them."""

    def made(jobs: int, task: str = "hold", attempts: int = 1) -> None:
        script = ENQUEUE.format(task=task, attempts=attempts, gate=str(gate), jobs=jobs)
        run(script, standby.either_url)

    return made


def started(gate: Gate, attempt: int = 1) -> int:
    return len(list(gate.path.parent.glob(f"{gate.path.name}.*.{attempt}")))


@pytest.mark.heavy
def test_running_jobs_succeed_once_when_a_standby_takes_over(
    workers: Workers, cluster: Cluster, standby: Standby, gate: Gate, enqueue: Enqueue
):
    url = standby.either_url
    runner = workers.launch("--processes=2", database_url=url)
    enqueue(10)
    enqueue(10, "async_hold")
    wait_until(lambda: started(gate) == 20)
    children = {child.pid for child in runner.children()}

    standby.settle()
    cluster.crash()
    wait_until(lambda: "connection to the database was lost" in runner.output)
    time.sleep(LOOK_SECONDS + 1)  # children would be dead by then if their locks might be seen free
    standby.promote()
    gate.open()
    done = "SELECT state, attempt FROM tenantqueue_job WHERE final"
    wait_until(lambda: len(rows(url, done)) == 20)
    enqueue(20)

    wait_until(lambda: len(rows(url, done)) == 40)
    assert rows(url, done) == [("success", 1)] * 40
    assert {child.pid for child in runner.children()} == children
    assert rows(url, "SELECT count(*) FROM tenantqueue_worker") == [(2,)]


@pytest.mark.heavy
def test_worker_that_starts_after_a_failover_rescues_the_dead_alone(
    workers: Workers, cluster: Cluster, standby: Standby, gate: Gate, enqueue: Enqueue
):
    """It finds nobody's locks, and those who live take longer to connect again than it looks."""
    url = standby.either_url
    slow = workers.launch("--processes=1", "--threads=2", "--no-maintenance", database_url=url)
    enqueue(2)
    wait_until(lambda: started(gate) == 2)
    doomed = workers.launch("--processes=1", "--no-maintenance", database_url=url)
    enqueue(1, attempts=2)
    wait_until(lambda: started(gate) == 3)

    standby.settle()
    slow.send(signal.SIGSTOP)
    os.killpg(doomed.process.pid, signal.SIGKILL)
    cluster.crash()
    standby.promote()
    late = workers.launch("--processes=1", database_url=url)
    looks = f"SELECT FROM tenantqueue_duty WHERE name = 'rescue' AND worker = '{late.name}'"
    wait_until(lambda: rows(url, looks))
    time.sleep(LOOK_SECONDS + 1.5)
    slow.send(signal.SIGCONT)

    wait_until(lambda: started(gate, attempt=2) == 1)
    gate.open()
    done = "SELECT state, attempt FROM tenantqueue_job WHERE final ORDER BY id"
    wait_until(lambda: len(rows(url, done)) == 3)
    assert rows(url, done) == [("success", 1), ("success", 1), ("success", 2)]


def test_worker_waits_when_the_server_is_a_standby(
    workers: Workers, cluster: Cluster, standby: Standby, gate: Gate, enqueue: Enqueue
):
    """Locks that are held there are seen by nobody who looks at the server that it follows."""
    gate.open()
    enqueue(1)
    runner = workers.launch("--processes=1", database_url=standby.url)
    wait_until(lambda: "the server is a standby" in runner.output)
    assert rows(cluster.url, "SELECT count(*) FROM tenantqueue_worker") == [(0,)]

    cluster.crash()
    standby.promote()

    done = "SELECT state FROM tenantqueue_job WHERE final"
    wait_until(lambda: rows(standby.url, done) == [("success",)])
