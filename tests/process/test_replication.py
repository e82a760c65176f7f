"""Logical replication of the jobs' table, as the page on the server describes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.core.management import call_command
from django.test import override_settings

from django_tenantqueue.testing import run_pending
from example_project.postgres import Cluster
from tests.databases import other_database, settings_of
from tests.testapp.tasks import fail, noop

from .workers import wait_until

PAGE = Path(__file__).parents[2] / "docs/howto/server.md"
Connection = psycopg.Connection[tuple[object, ...]]


class Servers:
    """A database with jobs, and an empty one of the same server that subscribes to it."""

    def __init__(self, url: str) -> None:
        self.publisher: Connection = psycopg.connect(url, autocommit=True)
        self.publisher.execute("CREATE DATABASE copies")
        self._url = url
        copies = urlsplit(url)._replace(path="/copies").geturl()
        self.subscriber: Connection = psycopg.connect(copies, autocommit=True)
        ((self._columns,),) = self.publisher.execute(
            "SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ') "
            "FROM pg_attribute "
            "WHERE attrelid = 'tenantqueue_job'::regclass AND attnum > 0 AND NOT attisdropped"
        ).fetchall()

    def make_table(self, name: str, key: str = ", PRIMARY KEY (id)") -> None:
        self.subscriber.execute(f"CREATE TABLE {name} ({self._columns}{key})")

    def subscribe(self, publication: str) -> None:
        # one server cannot wait for its own slot, so this is made before
        self.publisher.execute("SELECT pg_create_logical_replication_slot('copies', 'pgoutput')")
        self.subscriber.execute(
            f"CREATE SUBSCRIPTION copies CONNECTION '{self._url}' PUBLICATION {publication} "
            "WITH (create_slot = false)"
        )
        self.wait_for("SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'", True)

    def wait_for(self, query: str, wanted: object) -> None:
        wait_until(lambda: self.subscriber.execute(query).fetchall() == [(wanted,)], what=query)

    def leaves(self) -> list[str]:
        found = self.publisher.execute(
            "SELECT relid::regclass::text FROM pg_partition_tree('tenantqueue_job') WHERE isleaf"
        )
        return [str(leaf) for (leaf,) in found]

    def close(self) -> None:
        self.publisher.close()
        self.subscriber.close()


@pytest.fixture
def servers(transactional_db: None, cluster: Cluster) -> Iterator[Servers]:
    url = cluster.start(settings={"wal_level": "logical"})
    with other_database("published", settings_of(url)):
        call_command("migrate", database="published", verbosity=0)
        with override_settings(TENANTQUEUE={"DATABASE": "published"}):
            made = Servers(url)
            yield made
            made.close()


def publication_of_page() -> str:
    (found,) = re.findall(r"^```sql\n(CREATE PUBLICATION.*?)^```$", PAGE.read_text(), re.M | re.S)
    return str(found)


def test_finished_jobs_are_copied_into_one_table(servers: Servers) -> None:
    servers.publisher.execute(publication_of_page())
    servers.make_table("tenantqueue_job_history", key="")
    servers.subscribe("finished_jobs")
    noop.delay()
    job = fail.using(max_attempts=1).delay()

    run_pending()
    servers.wait_for("SELECT count(*) FROM tenantqueue_job_history", 2)
    assert job.refresh().retry()
    run_pending()

    servers.wait_for(f"SELECT count(*) FROM tenantqueue_job_history WHERE id = {job.pk}", 2)


def test_root_cannot_be_copied_with_its_changes(servers: Servers) -> None:
    servers.publisher.execute(
        "CREATE PUBLICATION whole FOR TABLE tenantqueue_job "
        "WITH (publish_via_partition_root = true)"
    )
    servers.make_table("tenantqueue_job")
    servers.subscribe("whole")
    noop.delay()
    servers.wait_for("SELECT count(*) FROM tenantqueue_job WHERE state = 'ready'", 1)

    run_pending()

    servers.wait_for("SELECT apply_error_count > 0 FROM pg_stat_subscription_stats", True)


def test_leaves_are_copied_if_each_has_a_table(servers: Servers) -> None:
    servers.publisher.execute("CREATE PUBLICATION leaves FOR TABLE tenantqueue_job")
    for leaf in servers.leaves():
        servers.make_table(leaf)
    servers.subscribe("leaves")
    job = noop.delay()
    servers.wait_for("SELECT count(*) FROM tenantqueue_job_hot", 1)
    query = "SELECT tableoid::regclass::text FROM tenantqueue_job WHERE id = %s"

    run_pending()

    ((leaf,),) = servers.publisher.execute(query, [job.pk]).fetchall()
    servers.wait_for(f"SELECT count(*) FROM {leaf} WHERE id = {job.pk}", 1)
    servers.wait_for("SELECT count(*) FROM tenantqueue_job_hot", 0)
    servers.subscriber.execute(f"DROP TABLE {leaf}")
    noop.delay()
    run_pending()
    servers.wait_for("SELECT apply_error_count > 0 FROM pg_stat_subscription_stats", True)
    servers.make_table(str(leaf))
    servers.subscriber.execute("ALTER SUBSCRIPTION copies REFRESH PUBLICATION")
    servers.wait_for(f"SELECT count(*) FROM {leaf}", 2)
