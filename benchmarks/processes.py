"""Processes that a measurement starts: watched, and ended whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from django_tenantqueue.worker.child.process import die_with_parent

from .results import Incorrect

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 60.0
STOP_SECONDS = 60.0
SHOWN_LINES = 10
LOOK_SECONDS = 0.01


def environment(url: str, **more: str) -> dict[str, str]:
    """Return the environment of a process that works on the database of `url`."""
    made = {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        **more,
    }
    made.pop("BENCHMARK_APPLICATION", None)
    return made


class Processes:
    """Some processes of one kind. Use as a context manager."""

    what = "a process"

    def __init__(self) -> None:
        self._commands: list[subprocess.Popen[Any]] = []
        self._outputs: list[Path] = []

    def start(
        self, command: Sequence[str], env: Mapping[str, str], output: Path, **popen: Any
    ) -> None:
        """Start one, in a process group of its own; it dies with this process."""
        self._outputs.append(output)
        with output.open("wb") as stream:
            self._commands.append(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env=env,
                    stderr=stream,
                    start_new_session=True,
                    preexec_fn=partial(die_with_parent, os.getpid()),
                    **{"stdin": subprocess.DEVNULL, "stdout": stream, **popen},
                )
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
            if isinstance(error, Incorrect):
                error.add_note(self.output())
            return
        self.stop()

    def wait_for(
        self, condition: Callable[[], object], what: str, seconds: float = START_SECONDS
    ) -> None:
        """Wait for something that the processes are to do."""
        end = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise Incorrect(f"not within {seconds:.0f} s: {what}")
            time.sleep(LOOK_SECONDS)

    def check(self) -> None:
        """Raise Incorrect when one of them has ended."""
        for command in self._commands:
            if command.poll() is not None:
                raise Incorrect(f"{self.what} has ended with exit code {command.returncode}")

    def output(self) -> str:
        """Return the last lines that each has printed."""
        texts = [path.read_text(errors="replace") for path in self._outputs]
        return "\n".join(line for text in texts for line in text.splitlines()[-SHOWN_LINES:])

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all, as SIGSTOP and SIGCONT."""
        for command in self._commands:
            command.send_signal(number)

    def tell_to_stop(self, command: subprocess.Popen[Any]) -> None:
        """Tell one to end, as a deploy would."""
        command.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End all; raise Incorrect when one does not end well."""
        try:
            for command in self._commands:
                self.tell_to_stop(command)
            end = time.monotonic() + STOP_SECONDS
            for command in self._commands:
                try:
                    code = command.wait(max(0.0, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    raise Incorrect(
                        f"{self.what} did not stop within {STOP_SECONDS:.0f} s"
                    ) from None
                if code:
                    raise Incorrect(f"{self.what} ended with exit code {code}\n{self.output()}")
        finally:
            self.kill()

    def abandon(self) -> None:
        """Kill all, and expect nothing of them: they may also have ended."""
        self.kill()
        self._commands.clear()

    def kill(self) -> None:
        """Kill those that are left, with their children."""
        for command in self._commands:
            if command.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(command.pid, signal.SIGKILL)
                command.wait()
            for stream in (command.stdin, command.stdout):
                if stream is not None:
                    stream.close()
