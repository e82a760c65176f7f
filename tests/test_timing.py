"""A test that was late is run again, and only such a test."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from .timing import TooLate, assert_within

ROOT = Path(__file__).resolve().parent.parent

TESTS = """
from itertools import count

from tests.timing import RERUN_WHEN_LATE, assert_within

pytestmark = RERUN_WHEN_LATE
runs, others = count(1), count(1)


def test_late_once():
    assert_within(1.0, 1.5 if next(runs) == 1 else 0.5)


def test_always_late():
    assert_within(1.0, 1.5)


def test_wrong_once():
    assert next(others) > 1
"""


def test_message_names_both_times_when_it_took_too_long():
    with pytest.raises(TooLate, match=r"it took 1\.500 s, and 1 s are the most"):
        assert_within(1.0, timedelta(seconds=1.5))
    assert_within(1.0, 1.0)


@pytest.mark.heavy
def test_only_late_tests_are_run_again(tmp_path):
    path = tmp_path / "test_runs.py"
    path.write_text(TESTS)
    options = [
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
    ]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert "2 failed, 1 passed, 3 rerun" in done.stdout
