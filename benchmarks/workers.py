"""Real `runworker` commands."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from .processes import Processes, environment
from .server import process_cpu


class Workers(Processes):
    """`commands` times `manage.py runworker --processes N`, and `options` if there are any."""

    what = "a worker"

    def __init__(
        self,
        commands: int,
        processes: int,
        *,
        options: Sequence[str] = (),
        url: str,
        log: Path,
        directory: Path,
    ) -> None:
        super().__init__()
        self.children_wanted = commands * processes
        env = environment(url, BENCHMARK_LOG=str(log))
        command = [
            *(sys.executable, "-m", "django", "runworker"),
            *("--processes", str(processes)),
            *options,
        ]
        for number in range(commands):
            self.start(command, env, directory / f"worker-{number}.log")
        self._supervisors = [psutil.Process(command.pid) for command in self._commands]

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
