"""A fleet of workers in few processes: started, asked what they did, and ended."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, Self

import psutil

from .processes import Processes, environment
from .results import Incorrect, Orders, Told
from .server import process_cpu

MOST_PROCESSES = 4
_numbers = count(1)


class Fleet(Processes):
    """Workers, each with the connection, the row and the claim loop of a real one.

    See crew.py. They are spread over up to MOST_PROCESSES processes, a thread for each, which spend
    nearly all their time in the kernel: waiting for the server, for a job's end, or asleep.
    """

    what = "a fleet's process"

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
        super().__init__()
        self.children_wanted = workers
        name = f"fleet-{next(_numbers)}"
        env = environment(url)
        processes = min(MOST_PROCESSES, workers)
        for number in range(processes):
            orders = Orders(
                name=f"{name}.{number}",
                workers=workers // processes + (number < workers % processes),
                threads=threads,
                seconds=seconds,
                supervised=supervised,
            )
            self.start(
                [sys.executable, "-m", "benchmarks.crew", json.dumps(asdict(orders))],
                env,
                directory / f"{name}.{number}.log",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self._processes = [psutil.Process(crew.pid) for crew in self._commands]

    def __enter__(self) -> Self:
        try:
            for crew in self._commands:
                assert crew.stdout is not None
                if crew.stdout.readline() != "ready\n":
                    raise Incorrect(f"a fleet's process did not start\n{self.output()}")
        except BaseException:
            self.kill()
            raise
        return self

    def ask(self, since: float = 0.0) -> Told:
        """Return what the workers have done since then (monotonic time)."""
        answers = []
        for crew in self._commands:
            assert crew.stdin is not None
            crew.stdin.write(f"{since}\n")
            crew.stdin.flush()
        for crew in self._commands:
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

    def tell_to_stop(self, command: subprocess.Popen[Any]) -> None:
        """Let its workers sign off: it ends with its input."""
        assert command.stdin is not None
        command.stdin.close()
