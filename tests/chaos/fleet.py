"""The supervisors of the run, each started again when it dies, as a service manager would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from .log import Log
from .plan import Scale

ROOT = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.05
RESTART_SECONDS = 0.3
END_SECONDS = 60.0


class Supervisor:
    """A place in the fleet: the name of a worker, and the process that fills the place now."""

    def __init__(self, name: str, options: list[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._options = options
        self.launch()

    def launch(self) -> None:
        """Start `runworker` in a process group of its own."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-W", "error", "-m", "django", "runworker"),
                    *(f"--name={self.name}", *self._options),
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def send(self, number: signal.Signals, *, group: bool) -> None:
        # not waited for by anybody else: a process that ended keeps its id until poll() is called
        """Send a signal to the supervisor, or to it and all its children at once."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                (os.killpg if group else os.kill)(self.process.pid, number)


class Fleet:
    """All supervisors, and the thread that starts them again."""

    def __init__(self, scale: Scale, directory: Path, log: Log) -> None:
        self._scale = scale
        self._directory = directory
        self._log = log
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="fleet", daemon=True)
        self.supervisors: list[Supervisor] = []
        self.restarts = 0

    def start(self) -> None:
        options = [
            f"--processes={self._scale.processes}",
            f"--threads={self._scale.threads}",
            f"--async-slots={self._scale.async_slots}",
        ]
        for number in range(self._scale.supervisors):
            name = f"chaos{number}"
            self.supervisors.append(Supervisor(name, options, self._directory / f"{name}.log"))
        self._thread.start()

    def pids(self) -> list[int]:
        return [supervisor.process.pid for supervisor in self.supervisors]

    def living(self) -> list[int]:
        """Return the process ids of those supervisors that have not ended."""
        return [s.process.pid for s in self.supervisors if s.process.poll() is None]

    def _keep(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            for supervisor in self.supervisors:
                code = supervisor.process.poll()
                if code is None:
                    continue
                self._log.note("restart", f"{supervisor.name} ended with {code}, is started again")
                self.restarts += 1
                if self._stopped.wait(RESTART_SECONDS):
                    return
                supervisor.launch()

    def stop(self) -> list[int]:
        """Ask all of them to end, as a deploy does; return their exit codes."""
        self._stopped.set()
        self._thread.join()
        for supervisor in self.supervisors:
            supervisor.send(signal.SIGTERM, group=False)
        end = time.monotonic() + END_SECONDS
        codes = []
        for supervisor in self.supervisors:
            try:
                codes.append(supervisor.process.wait(max(0.0, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                supervisor.send(signal.SIGKILL, group=True)
                codes.append(supervisor.process.wait())
        return codes

    def destroy(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        for supervisor in self.supervisors:
            supervisor.send(signal.SIGKILL, group=True)
            supervisor.process.wait()
