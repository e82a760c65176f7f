"""The server is stopped and started again while jobs run."""

import subprocess
import sys

import psycopg

from example_project.postgres import Cluster

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
    """Return the rows of a query to the server."""
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
