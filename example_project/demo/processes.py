"""The processes of a demo: started together, watched, and stopped in order."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

PROJECT = Path(__file__).resolve().parents[2]
MANAGE = Path(__file__).resolve().parents[1] / "manage.py"
PR_SET_PDEATHSIG = 1
STOP_SECONDS = 20.0
SHOWN_LINES = 25


class ProcessEnded(Exception):
    """A process of the demo ended unexpectedly."""


class Processes:
    """Management commands that run beside this process, each with a log file."""

    def __init__(self) -> None:
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._stack = ExitStack()
        self.logs = Path()

    def __enter__(self) -> Self:
        self.logs = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="tenantqueue-demo-"))
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop all processes, the newest first, and remove the logs."""
        try:
            while self._running:
                name, _ = self._running[-1]
                self.stop(name)
        finally:
            self._stack.close()

    def start(self, name: str, *command: str) -> None:
        """Start a management command; its output goes to a log file of that name."""
        log = self._stack.enter_context((self.logs / f"{name}.log").open("wb"))
        process = subprocess.Popen(
            [sys.executable, str(MANAGE), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=PROJECT,
            start_new_session=True,  # CTRL-C goes to the demo, which then stops them in order
            preexec_fn=_end_with_parent(),
        )
        self._running.append((name, process))

    def check(self) -> None:
        """Raise ProcessEnded, with the end of its log, if a process has ended."""
        for name, process in self._running:
            if process.poll() is not None:
                lines = self._log(name).splitlines()[-SHOWN_LINES:]
                raise ProcessEnded(
                    f"The {name} ended with exit code {process.returncode}:\n"
                    + "\n".join(f"  {line}" for line in lines)
                )

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        """Wait for a condition; raise ProcessEnded when a process ends or time is up."""
        end = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise ProcessEnded(f"Timeout after {seconds:g} s, waiting for {what}.")
            time.sleep(0.05)

    def stop(self, name: str) -> int:
        """Stop a process and return its exit code; kill it after STOP_SECONDS."""
        entry = next(entry for entry in self._running if entry[0] == name)
        process = entry[1]
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(timeout=STOP_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._running.remove(entry)
        return process.returncode

    def _log(self, name: str) -> str:
        return (self.logs / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip()


def _end_with_parent() -> Callable[[], None] | None:
    """Return what makes the kernel end a child when the demo is killed (Linux; elsewhere None)."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)

    def ask() -> None:
        library.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    return ask
