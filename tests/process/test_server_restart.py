"""The server is stopped and started again while jobs run."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psycopg

from django_tenantqueue.queries.rescue import find_dead_workers
from example_project.postgres import Cluster
from tests.timing import assert_within

from .workers import ROOT, SETTINGS, Gate, Workers, wait_until

PREPARE = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django_tenantqueue.models import TenantQueue
from tests.process.tasks import async_hold, hold
from tests.testapp.tasks import noop
TenantQueue.objects.create(tenant="", name="default", num_slots=20)
for _ in range(10):
    hold.using(max_attempts=1).delay({gate!r})
    async_hold.using(max_attempts=1).delay({gate!r})
TenantQueue.objects.create(tenant="later", name="default", paused=True)
noop.using(tenant="later").enqueue_many([()] * 20)
"""


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def test_running_jobs_succeed_once_when_the_server_is_restarted(
    workers: Workers, cluster: Cluster, gate: Gate
):
    url = cluster.start()
    env = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS, "PYTHONPATH": str(ROOT)}
    script = PREPARE.format(gate=str(gate))
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, check=True)
    runner = workers.launch("--processes=2", database_url=url)
    wait_until(lambda: len(list(gate.path.parent.glob("gate.*.1"))) == 20)
    children = {child.pid for child in runner.children()}

    cluster.stop()
    wait_until(lambda: "connection to the database was lost" in runner.output)
    assert cluster.start() == url
    gate.open()

    done = "SELECT state, attempt FROM tenantqueue_job WHERE final"
    wait_until(lambda: len(rows(url, done)) == 20)
    assert rows(url, done) == [("success", 1)] * 20
    rows(url, "UPDATE tenantqueue_tenantqueue SET paused = false RETURNING id")
    wait_until(lambda: len(rows(url, done)) == 40)
    assert {child.pid for child in runner.children()} == children


DEAD = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from tests.factories import make_worker
make_worker(leased=True)
"""


def test_nobody_is_dead_right_after_a_crash_of_the_servers_processes(cluster: Cluster):
    """One of them that is killed takes the sessions of all with it, and their locks."""
    url = cluster.start()
    env = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", DEAD], cwd=ROOT, env=env, check=True)

    def dead(settle_seconds: float) -> list[int]:
        with suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
            return list(
                find_dead_workers(connection, settle_seconds=settle_seconds, lease_seconds=30.0)
            )
        return []

    wait_until(lambda: dead(3.0))
    with suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        connection.execute("SELECT 1")
    crashed_at = time.monotonic()

    wait_until(lambda: dead(0.0))
    found = dead(20.0)
    assert_within(20.0, time.monotonic() - crashed_at)
    assert found == []
    wait_until(lambda: dead(3.0))
