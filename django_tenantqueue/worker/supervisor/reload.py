"""For development: run the worker in its own process and restart it when code changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from django.apps import apps
from django.utils.autoreload import StatReloader

OPTION = "--reload"
VARIABLE = "TENANTQUEUE_RELOAD"


class Reloader:
    """Runs the same command without reloading, again after each change.

    A worker that cannot start (a syntax error, say) is started again after the next change.
    """

    def __init__(self, *, say: Callable[[str], object]) -> None:
        self._say = say
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Run until the worker ends by itself or this process is stopped; return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        while True:
            before = snapshot()
            environment = {k: v for k, v in os.environ.items() if k != VARIABLE}
            self._process = subprocess.Popen(  # noqa: S603 - this very command
                command_line(), env=environment
            )
            changed = self._wait(before)
            if changed is None:
                code = self._process.wait()
                # stopped before it could say how it would stop
                return 0 if self._stopped and code == -signal.SIGTERM else code
            self._say(f"{changed} has changed: restarting the worker")
            if self._process.poll() is None:
                self._process.terminate()
            self._process.wait()

    def _wait(self, before: dict[Path, float]) -> Path | None:
        """Return the file that changed; None when the worker has ended for good."""
        assert self._process is not None
        told = False
        while True:
            code = self._process.poll()
            if self._stopped or code == 0:
                return None
            if code is not None and not told:
                told = True
                self._say(f"the worker ended with exit code {code}; waiting for a change")
            changed = first_change(before, snapshot())
            if changed is not None:
                return changed
            time.sleep(0.5)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True
        # a terminal signals the worker as well; it counts the same signal once more at most
        if number == signal.SIGTERM and self._process is not None:
            self._process.send_signal(number)


def command_line() -> list[str]:
    """Return this process's own command line without --reload."""
    return [sys.executable, *(part for part in sys.orig_argv[1:] if part != OPTION)]


def snapshot() -> dict[Path, float]:
    """Return when each Python file of the loaded modules and of the project's apps was changed."""
    files = StatReloader()
    installed = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    for config in apps.get_app_configs():
        if not config.path.startswith(installed):
            files.watch_dir(Path(config.path).resolve(), "**/*.py")  # also what is not loaded yet
    return dict(files.snapshot_files())


def first_change(before: dict[Path, float], after: dict[Path, float]) -> Path | None:
    """Return a file that is new, gone or changed; None when there is none."""
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            return path
    return None
