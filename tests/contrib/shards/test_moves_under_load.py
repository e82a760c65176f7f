"""Moves under load with real workers: a short form of `python -m tests.contrib.shards.moves`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contrib.shards.conftest import ALIASES
from tests.contrib.shards.moves.audit import faults
from tests.contrib.shards.test_worker import SETTINGS
from tests.databases import url_of_schema
from tests.zygote import ROOT


@pytest.mark.usefixtures("shards")
def test_no_job_is_lost_or_runs_twice_when_movers_are_killed(server_url: str, database_url: str):
    name = database_url.rpartition("/")[2]
    urls = {alias: url_of_schema(server_url, name, alias) for alias in ALIASES}
    env = {
        **os.environ,
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "TEST_SHARDS": json.dumps(urls),
    }
    command = [sys.executable, "-m", "tests.contrib.shards.moves.run", "--moves=3", "--seed=1"]

    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def marks(tmp_path: Path, *runs: tuple[int, float, float]) -> Path:
    path = tmp_path / "marks"
    lines = [
        f"{what}\tacme/strict\t{number}\t{at}\tus0\n"
        for number, begin, end in runs
        for what, at in (("begin", begin), ("end", end))
    ]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    ("runs", "fault"),
    [
        ([(0, 1.0, 2.0), (1, 2.0, 3.0)], None),
        ([(0, 1.0, 2.0)], "1 of 2 jobs never ran"),
        ([(0, 1.0, 2.0), (1, 2.0, 3.0), (1, 3.0, 4.0)], "1 jobs ran twice"),
        ([(1, 1.0, 2.0), (0, 2.0, 3.0)], "job 0 began after later ones"),
        ([(0, 1.0, 2.0), (1, 1.5, 3.0)], "2 jobs ran at once"),
    ],
)
def test_audit_finds(tmp_path: Path, runs: list[tuple[int, float, float]], fault: str | None):
    found = faults(marks(tmp_path, *runs), {"acme/strict": 2}, {"acme/strict": 1})

    assert (fault or "") in "".join(found)
    assert bool(found) == bool(fault)
