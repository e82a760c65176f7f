"""What `manage.py workerhealth` answers to a probe."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from django_tenantqueue.management.commands.workerhealth import Command
from tests.factories import make_worker

Answer = tuple[int, str]


def ask(*arguments: str) -> Answer:
    """Return the exit code and the line that is printed."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    try:
        call_command("workerhealth", *arguments, stdout=out, stderr=err, no_color=True)
    except SystemExit as ended:
        code = int(str(ended.code))
    assert bool(out.getvalue()) != bool(err.getvalue())
    return code, (out.getvalue() or err.getvalue()).rstrip("\n")


@pytest.fixture
def heartbeat(tmp_path: Path) -> Callable[..., str]:
    def write(**changes: Any) -> str:
        content = {"pid": 7, "at": time.time(), "ready": True, "reason": "", **changes}
        path = tmp_path / "heartbeat"
        path.write_text(json.dumps(content))
        return str(path)

    return write


Heartbeat = Callable[..., str]


# by the file, without a database


DRAINS = {"ready": False, "reason": "it drains"}
UNREADY = "worker 7 is not ready: "


@pytest.mark.parametrize(
    ("age", "written", "options", "code", "said"),
    [
        (0, {}, [], 0, "worker 7 sent a heartbeat "),
        (60, {}, [], 1, "worker 7 sent its last heartbeat 1 min 0 s ago, not within 30 s"),
        (60, {}, ["--max-age=90"], 0, "worker 7 "),
        (-3600, {}, [], 1, "ahead of this clock"),
        (0, DRAINS, [], 0, "worker 7 "),
        (0, DRAINS, ["--readiness"], 1, f"{UNREADY}it drains"),
        (0, {}, ["--readiness"], 0, "worker 7 "),
        (0, {"ready": "yes"}, ["--readiness"], 1, f"{UNREADY}no reason given"),
        (0, {"ready": 1}, ["--readiness"], 1, f"{UNREADY}no reason given"),
        (0, {"ready": None}, ["--readiness"], 1, f"{UNREADY}no reason given"),
    ],
)
def test_file_is_judged_by_its_age_and_readiness(
    heartbeat: Heartbeat,
    age: int,
    written: dict[str, Any],
    options: list[str],
    code: int,
    said: str,
) -> None:
    path = heartbeat(at=time.time() - age, **written)

    found, line = ask("--heartbeat-file", path, *options)

    assert found == code
    assert line.startswith("unhealthy: " if code else "healthy: ")
    assert said in line


@pytest.mark.parametrize(("name", "error"), [("missing", 2), (".", 21)])
def test_path_that_cannot_be_read_is_unhealthy(tmp_path: Path, name: str, error: int) -> None:
    path = str(tmp_path / name)

    assert ask("--heartbeat-file", path) == (
        1,
        f"unhealthy: the heartbeat file {path!r} cannot be read: {os.strerror(error)}",
    )


GARBAGE = [b"", b"{", b"\xff\xfe\x00", b"[" * 60_000, b"1" * 70_000 + b" {}"]
TIMELESS = [b"[]", b"null", b"12", b"{}", b'{"at": "now"}', b'{"at": true}', b'{"at": NaN}']


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((content, "holds no JSON of a worker") for content in GARBAGE),
        *((content, "does not say when it was written") for content in TIMELESS),
    ],
)
def test_garbage_is_unhealthy(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "heartbeat"
    path.write_bytes(content)

    code, line = ask("--heartbeat-file", str(path))

    assert (code, said in line) == (1, True), line


@pytest.mark.parametrize("age", ["-1", "nan", "inf", "soon"])
def test_wrong_age_is_refused(age: str) -> None:
    with pytest.raises(CommandError, match="is not a number of seconds"):
        ask(f"--max-age={age}")


def test_no_system_check_is_run() -> None:
    assert list(Command.requires_system_checks) == []


def test_process_ends_with_the_code_and_needs_no_database(heartbeat: Heartbeat) -> None:
    """The settings name a server that cannot be reached."""
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DATABASE_URL": "postgres://nobody@no-such-host.invalid/nothing",
    }
    command = [sys.executable, "-m", "django", "workerhealth", "--heartbeat-file"]

    def run(path: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, path], env=env, capture_output=True, text=True, check=False
        )

    well, ill = run(heartbeat()), run("/no/such/file")

    assert (well.returncode, well.stderr) == (0, "")
    assert well.stdout.startswith("healthy: worker 7 ")
    assert (ill.returncode, ill.stdout) == (1, "")
    assert ill.stderr.startswith("unhealthy: the heartbeat file '/no/such/file' cannot be read")


# by the rows


@pytest.mark.django_db
def test_row_of_this_host_is_healthy() -> None:
    make_worker(host=socket.gethostname())
    make_worker(host="elsewhere")

    code, line = ask()

    assert code == 0
    assert line == (
        f"healthy: 1 of 1 worker of host {socket.gethostname()!r} sent a heartbeat in 30 s"
    )


@pytest.mark.django_db
def test_host_without_workers_is_unhealthy() -> None:
    make_worker(host="elsewhere")

    assert ask("--host=web-7") == (1, "unhealthy: no worker of host 'web-7' is registered")


@pytest.mark.django_db
def test_silent_workers_are_unhealthy_within_the_age_that_counts() -> None:
    make_worker(heartbeat_at=timezone.now() - timedelta(seconds=45))

    assert ask("--host=web-1") == (
        1,
        "unhealthy: no worker of host 'web-1' (1 registered) sent a heartbeat in 30 s",
    )
    assert ask("--host=web-1", "--max-age=90")[0] == 0


@pytest.mark.django_db
def test_name_is_what_names_begin_with() -> None:
    make_worker(name="reports-1.1")

    assert ask("--host=web-1", "--name=reports-")[0] == 0
    assert ask("--host=web-1", "--name=mail-")[0] == 1
    assert ask("--host=web-1", "--name=%")[0] == 1


@pytest.mark.django_db
@pytest.mark.parametrize("column", ["draining", "stopping"])
def test_worker_that_leaves_is_alive_and_not_ready(column: str) -> None:
    make_worker(**{column: True})

    assert ask("--host=web-1")[0] == 0
    assert ask("--host=web-1", "--readiness") == (
        1,
        "unhealthy: every worker of host 'web-1' is draining or stopping",
    )


def test_database_that_cannot_be_used_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("connection refused\n\tIs the server running?")

    monkeypatch.setattr("django_tenantqueue.management.commands.workerhealth.judge_rows", refuse)

    code, line = ask()

    assert code == 1
    assert line.endswith("'default' cannot be used: connection refused Is the server running?")


@pytest.mark.django_db
def test_unknown_database_is_unhealthy() -> None:
    code, line = ask("--database=elsewhere")

    assert code == 1
    assert "the jobs' database 'elsewhere' cannot be used" in line
