"""A fleet of workers in few processes: started, asked what they did, and ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType

import psutil

from django_tenantqueue.worker.process import die_with_parent

from .results import Incorrect, Orders, Told
from .server import process_cpu
from .workers import ROOT, SHOWN_LINES, START_SECONDS, STOP_SECONDS

MOST_PROCESSES = 4
_numbers = count(1)


class Fleet:
    """So many workers, each with the connection, the row and the claim loop of a real one.

    See crew.py. They are spread over up to MOST_PROCESSES processes, a thread for each, which spend
    nearly all their time in the kernel: waiting for the server, for a job's end, or asleep.
    """

    def __init__(
        self,
        workers: int,
        *,
        url: str,
        directory: Path,
        threads: int,
        seconds: float,
        supervised: bool,
    ) -> None:
        self.children_wanted = workers
        name = f"fleet-{next(_numbers)}"
        self._output = directory / f"{name}.log"
        environment = {
            **os.environ,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        }
        environment.pop("BENCHMARK_APPLICATION", None)
        processes = min(MOST_PROCESSES, workers)
        self._crews: list[subprocess.Popen[str]] = []
        with self._output.open("w") as stream:
            for number in range(processes):
                orders = Orders(
                    name=f"{name}.{number}",
                    workers=workers // processes + (number < workers % processes),
                    threads=threads,
                    seconds=seconds,
                    supervised=supervised,
                )
                self._crews.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "benchmarks.crew", json.dumps(asdict(orders))],
                        cwd=ROOT,
                        env=environment,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=stream,
                        text=True,
                        start_new_session=True,
                        preexec_fn=partial(die_with_parent, os.getpid()),
                    )
                )
        self._processes = [psutil.Process(crew.pid) for crew in self._crews]

    def __enter__(self) -> Fleet:
        try:
            for crew in self._crews:
                assert crew.stdout is not None
                if crew.stdout.readline() != "ready\n":
                    raise Incorrect(f"a fleet's process did not start\n{self.output()}")
        except BaseException:
            self._kill()
            raise
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
        """Wait for something that the workers are to do."""
        end = time.monotonic() + START_SECONDS
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise Incorrect(f"not within {START_SECONDS:.0f} s: {what}")
            time.sleep(0.02)

    def check(self) -> None:
        """Raise Incorrect when one of the processes has ended."""
        for crew in self._crews:
            if crew.poll() is not None:
                raise Incorrect(f"a fleet's process has ended with exit code {crew.returncode}")

    def ask(self, since: float = 0.0) -> Told:
        """Return what the workers have done since then (monotonic time)."""
        answers = []
        for crew in self._crews:
            assert crew.stdin is not None
            crew.stdin.write(f"{since}\n")
            crew.stdin.flush()
        for crew in self._crews:
            assert crew.stdout is not None
            line = crew.stdout.readline()
            if not line:
                raise Incorrect("a fleet's process does not answer")
            answers.append(Told(**json.loads(line)))
        return Told(
            least_claims=min(told.least_claims for told in answers),
            claims=sum(told.claims for told in answers),
            empty_claims=sum(told.empty_claims for told in answers),
            seconds=[seconds for told in answers for seconds in told.seconds],
            begun=[pair for told in answers for pair in told.begun],
        )

    def cpu_seconds(self) -> float:
        """Return the CPU time of all processes."""
        return sum(map(process_cpu, self._processes))

    def output(self) -> str:
        """Return the last lines that they have printed."""
        return "\n".join(self._output.read_text(errors="replace").splitlines()[-SHOWN_LINES:])

    def stop(self) -> None:
        """Let all workers sign off; raise Incorrect when one does not end well."""
        try:
            for crew in self._crews:
                assert crew.stdin is not None
                crew.stdin.close()
            end = time.monotonic() + STOP_SECONDS
            for crew in self._crews:
                try:
                    code = crew.wait(max(0.0, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    raise Incorrect(f"a fleet did not stop within {STOP_SECONDS:.0f} s") from None
                if code:
                    raise Incorrect(f"a fleet's process ended with exit code {code}")
        finally:
            self._kill()

    def _kill(self) -> None:
        for crew in self._crews:
            if crew.poll() is None:
                crew.kill()
                crew.wait()
            for stream in (crew.stdin, crew.stdout):
                if stream is not None:
                    stream.close()
