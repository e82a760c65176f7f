"""Who announces a sleep, ends it or wakes others does not wait for the disk or a standby."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotReady
from functools import partial

import psycopg
import pytest

from django_tenantqueue.queries import workers as queries
from django_tenantqueue.queries.enqueue import wake_any_workers
from example_project.postgres import Cluster
from tests.factories import register_worker

from .workers import ROOT, SETTINGS

PREPARE = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", "tenantqueue", verbosity=0)
"""
WAKE = """
import django; django.setup()
from django_tenantqueue.queries.enqueue import wake_workers
assert wake_workers("default", {("", "default"): 1}) == 1
"""


@pytest.fixture
def url(cluster: Cluster) -> str:
    """Return a server on which a commit that waits for its standby waits for ever."""
    url = cluster.start()
    run(PREPARE, url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        connection.execute("SELECT pg_reload_conf()")
    return url


def run(script: str, url: str) -> None:
    env = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": SETTINGS, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=env, check=True, timeout=60)


@pytest.mark.heavy
def test_nobody_waits_for_the_disk_when_a_worker_sleeps_or_is_woken(url: str):
    with psycopg.connect(url, autocommit=True) as db, ThreadPoolExecutor(1) as pool:
        db.execute("SET synchronous_commit = local")
        worker = register_worker(db)
        db.execute("SET synchronous_commit = on")

        for wake in (
            lambda: queries.clear_sleep(db, worker),
            lambda: wake_any_workers(db, most=1),
            lambda: run(WAKE, url),
        ):
            for call in (partial(queries.sleep_worker, db, worker, 60.0), wake):
                done = pool.submit(call)
                try:
                    done.result(timeout=20)
                finally:
                    if not done.done():
                        db.cancel()
            asleep = db.execute("SELECT sleeping_until FROM tenantqueue_worker").fetchone()
            assert asleep == (None,)

        durable = pool.submit(db.execute, "UPDATE tenantqueue_worker SET pid = 2")
        with pytest.raises(NotReady):
            durable.result(timeout=1)
        db.cancel()
        durable.result(timeout=30)
