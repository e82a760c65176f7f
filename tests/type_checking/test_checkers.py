"""mypy and pyright, both strict, find all planted errors, and nothing in what is right."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy  # the newest versions are checked, for all

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
FILES = [FOLDER / "right.py", FOLDER / "wrong.py"]
ADVICE = "make check installs it, and so does: pip install -e '.[lint]'"

Found = set[tuple[str, int]]


def run(checker: str, *arguments: str) -> str:
    """Return what a checker prints. Without it the test is skipped, and fails if CI is set."""
    stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    if importlib.util.find_spec(checker) is None:
        stop(f"no {checker}: {ADVICE}")
    done = subprocess.run(
        [sys.executable, "-m", checker, *arguments, *map(str, FILES)],
        cwd=ROOT,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if not done.stdout.strip().startswith("{"):  # pyright brings its program when it is first run
        stop(f"{checker} cannot run: {done.stderr[-1000:] or done.stdout[-1000:]}\n{ADVICE}")
    return done.stdout


def found_by_mypy() -> Found:
    lines = run("mypy", "--strict", "--output", "json").splitlines()
    errors = [json.loads(line) for line in lines if line.startswith("{")]
    return {(Path(e["file"]).name, e["line"]) for e in errors if e["severity"] == "error"}


def found_by_pyright() -> Found:
    found = json.loads(run("pyright", "--outputjson", "--pythonpath", sys.executable))
    return {
        (Path(error["file"]).name, error["range"]["start"]["line"] + 1)
        for error in found["generalDiagnostics"]
        if error["severity"] in ("error", "warning")
    }


def planted() -> Found:
    return {
        (path.name, number)
        for path in FILES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "  # wrong: " in line
    }


def test_fourteen_errors_are_planted() -> None:
    assert len(planted()) == 14


@pytest.mark.parametrize("found_by", [found_by_mypy, found_by_pyright])
def test_checker_finds_the_planted_errors_and_no_others(found_by: object) -> None:
    assert callable(found_by)
    assert found_by() == planted()
