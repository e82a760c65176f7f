"""Real `runworker` commands: started, watched, and ended whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType

import psutil

from django_tenantqueue.worker.process import die_with_parent

from .results import Incorrect
from .server import process_cpu

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 60.0
STOP_SECONDS = 60.0
SHOWN_LINES = 10


class Workers:
    """`commands` times `manage.py runworker --processes N`, with nothing else on the line."""

    def __init__(
        self, commands: int, processes: int, *, url: str, log: Path, directory: Path
    ) -> None:
        self.children_wanted = commands * processes
        environment = {
            **os.environ,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "BENCHMARK_LOG": str(log),
        }
        environment.pop("BENCHMARK_APPLICATION", None)
        self._outputs = [directory / f"worker-{number}.log" for number in range(commands)]
        self._commands: list[subprocess.Popen[bytes]] = []
        for output in self._outputs:
            with output.open("wb") as stream:
                self._commands.append(
                    subprocess.Popen(
                        [
                            *(sys.executable, "-m", "django", "runworker"),
                            *("--processes", str(processes)),
                        ],
                        cwd=ROOT,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        preexec_fn=partial(die_with_parent, os.getpid()),
                    )
                )
        self._supervisors = [psutil.Process(command.pid) for command in self._commands]

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._kill()
            if isinstance(error, Incorrect):
                error.add_note(self.output())
            return
        self.stop()

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something that the workers are to do at their start."""
        end = time.monotonic() + START_SECONDS
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise Incorrect(f"not within {START_SECONDS:.0f} s: {what}")
            time.sleep(0.01)

    def check(self) -> None:
        """Raise Incorrect when one of the commands has ended."""
        for command in self._commands:
            if command.poll() is not None:
                raise Incorrect(f"a worker has ended with exit code {command.returncode}")

    def children(self) -> list[psutil.Process]:
        """Return the processes that run jobs."""
        return [child for supervisor in self._supervisors for child in supervisor.children()]

    def kill_child(self, pid: int) -> None:
        """Kill one child; its supervisor lives."""
        os.kill(pid, signal.SIGKILL)

    def kill_command_of(self, pid: int) -> None:
        """Kill the whole command to which a child belongs, and expect no more of it."""
        supervisor = psutil.Process(pid).ppid()
        os.killpg(supervisor, signal.SIGKILL)
        (command,) = [command for command in self._commands if command.pid == supervisor]
        command.wait()
        self._commands.remove(command)
        self._supervisors = [process for process in self._supervisors if process.pid != supervisor]

    def cpu_seconds(self) -> float:
        """Return the CPU time of all commands with their children, ended ones included."""
        used = 0.0
        for supervisor in self._supervisors:
            family = [supervisor, *supervisor.children(recursive=True)]
            times = supervisor.cpu_times()
            used += sum(map(process_cpu, family)) + times.children_user + times.children_system
        return used

    def output(self) -> str:
        """Return the last lines that the commands have printed."""
        texts = [path.read_text(errors="replace") for path in self._outputs]
        return "\n".join(line for text in texts for line in text.splitlines()[-SHOWN_LINES:])

    def stop(self) -> None:
        """End the commands as a deploy would; raise Incorrect when one does not end well."""
        try:
            for command in self._commands:
                command.send_signal(signal.SIGTERM)
            end = time.monotonic() + STOP_SECONDS
            for command in self._commands:
                try:
                    code = command.wait(max(0.0, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    raise Incorrect(f"a worker did not stop within {STOP_SECONDS:.0f} s") from None
                if code:
                    raise Incorrect(f"a worker ended with exit code {code}\n{self.output()}")
        finally:
            self._kill()

    def _kill(self) -> None:
        for command in self._commands:
            if command.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(command.pid, signal.SIGKILL)
                command.wait()
