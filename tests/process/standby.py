"""A standby server that follows another one and can take its place."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import psycopg

from django_tenantqueue.operations.rescue import SETTLE_SECONDS
from example_project.postgres import Cluster

from .workers import wait_until


class Standby:
    """A copy of a running server, which confirms each of its commits."""

    def __init__(self, primary: Cluster, cluster: Cluster) -> None:
        self.primary_url = primary.url
        self._cluster = cluster
        cluster.account.own(cluster.home)
        done = cluster.account.run(
            [
                cluster.binaries.program("pg_basebackup"),
                f"--dbname={primary.url}",
                f"--pgdata={cluster.data}",
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--no-sync",
            ]
        )
        assert done.returncode == 0, done.stdout
        cluster.state_file.write_text(primary.state_file.read_text())
        self.url = cluster.start()
        with psycopg.connect(primary.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            wait_until(lambda: self._confirms(connection), what="the standby confirms commits")

    @staticmethod
    def _confirms(connection: psycopg.Connection[tuple[str]]) -> bool:
        found = connection.execute("SELECT sync_state FROM pg_stat_replication").fetchall()
        return found == [("sync",)]

    @property
    def either_url(self) -> str:
        """The URL of whichever of both servers can be written to, as Django and libpq know it."""
        first, second = urlsplit(self.primary_url), urlsplit(self.url)
        hosts = f"{first.netloc},{second.hostname}:{second.port}"
        return f"{first.scheme}://{hosts}{first.path}?target_session_attrs=read-write"

    def settle(self) -> None:
        """Wait until it has run for longer than anybody is lenient with a server just started."""
        settled = timedelta(seconds=SETTLE_SECONDS + 1)
        query = "SELECT clock_timestamp() - pg_postmaster_start_time()"
        with psycopg.connect(self.url, autocommit=True) as connection:
            wait_until(lambda: connection.execute(query).fetchall() > [(settled,)])

    def promote(self) -> None:
        """Let it take the place of the server that it followed."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            ((promoted,),) = connection.execute("SELECT pg_promote()").fetchall()
            assert promoted
