"""A worker for development starts anew when code changes."""

import os
import signal
import sys

import pytest

from .workers import Workers, wait_until

PATIENCE = 60.0
"""Each start loads Django, and there are two for each."""

SETTINGS = """
import sys
from tests.process.settings import *
INSTALLED_APPS = [*INSTALLED_APPS, "reloaded"]
"""


@pytest.fixture
def app(tmp_path, monkeypatch):
    folder = tmp_path / "reloaded"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (tmp_path / "reloaded_settings.py").write_text(SETTINGS)
    tasks = folder / "tasks.py"
    tasks.write_text("print('first version', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    return tasks


@pytest.mark.heavy
def test_worker_starts_anew_when_a_file_changes(workers: Workers, app):
    runner = workers.launch("--reload", module="reloaded_settings", anew=True)
    wait_until(lambda: "Stop with" in runner.output, PATIENCE)
    assert "first version" in runner.output

    app.write_text("print('second version', flush=True)\n")

    wait_until(lambda: runner.output.count("Stop with") == 2, PATIENCE)
    assert "second version" in runner.output
    assert "tasks.py has changed" in runner.output
    runner.send(signal.SIGTERM)
    assert runner.end() == 0


@pytest.mark.heavy
def test_worker_is_started_after_the_next_change_when_it_could_not_start(workers: Workers, app):
    runner = workers.launch("--reload", module="reloaded_settings", anew=True)
    wait_until(lambda: "Stop with" in runner.output, PATIENCE)

    app.write_text("def unfinished(:\n")
    wait_until(lambda: "waiting for a change" in runner.output, PATIENCE)
    app.write_text("print('mended', flush=True)\n")

    wait_until(lambda: runner.output.count("Stop with") == 2, PATIENCE)
    assert "SyntaxError" in runner.output
    runner.send(signal.SIGTERM)
    assert runner.end() == 0
