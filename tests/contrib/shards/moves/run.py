"""The run itself, in databases that are migrated and set up: TEST_SHARDS has their URLs.

Lines of jobs are enqueued by two processes, which take turns: what one enqueues after the other
has to start after it. A move is done in a process of its own, which is killed at a random moment or
before or after a random commit, and done again, until it is complete. Exits with 1 when anything
is wrong.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django
from django.db import OperationalError, connections, transaction
from django.db.models import Count

from django_tenantqueue.exceptions import InvalidState, TenantMoving

FORK = get_context("fork")
TENANTS = ("acme", "globex", "initech")
LINES = {"strict": 1, "session": 1, "wide": 4}
"""The lines of a tenant: how many of their jobs may run at once."""
BODY_SECONDS = 0.004
PAUSE_SECONDS = 0.2
STOP_SECONDS = 0.2
"""An enqueue that took longer was rejected before."""
PATIENCE_SECONDS = 120.0


def enqueuer(directory: Path, name: str) -> None:
    """Enqueue the jobs of a line until the file `stop` exists, in turns with another process."""
    from tests.contrib.shards.tasks import mark

    connections.close_all()
    tenant, line = name.split("/")
    options: dict[str, Any] = {"tenant": tenant, "queue": line}
    if line == "session":
        options["session"] = "s"
    turn = os.open(directory / f"{name.replace('/', '-')}.count", os.O_RDWR | os.O_CREAT)
    while not (directory / "stop").exists():
        fcntl.flock(turn, fcntl.LOCK_EX)
        number = int(os.pread(turn, 20, 0) or b"0")
        since = time.monotonic()
        while True:
            try:
                mark.using(**options).delay(name, number, BODY_SECONDS)
                break
            except (TenantMoving, OperationalError):
                time.sleep(0.01)
        waited = time.monotonic() - since
        if waited > STOP_SECONDS:
            with (directory / "stops").open("a") as stops:
                stops.write(f"{waited}\n")
        os.pwrite(turn, b"%020d" % (number + 1), 0)
        fcntl.flock(turn, fcntl.LOCK_UN)
        time.sleep(PAUSE_SECONDS)


def die_at_commit(nth: int) -> None:
    """Kill this process before or after its nth end of a transaction or savepoint."""
    left, leave = [nth], transaction.Atomic.__exit__

    def count(self: Any, *args: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        leave(self, *args)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    transaction.Atomic.__exit__ = count  # type: ignore[method-assign]


def mover(act: Callable[[], object], nth: int) -> None:
    connections.close_all()
    if nth:
        die_at_commit(nth)
    with suppress(InvalidState):  # an earlier mover has done it
        act()
    connections.close_all()


class Run:
    """One run."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.random = random.Random(seed)
        self.kills = self.cancels = 0
        self.seconds: list[float] = []

    def move(self) -> None:
        """Move a random tenant, with movers that are killed, until it is moved."""
        from django_tenantqueue.contrib.shards.control import cancel_move, move_tenant, shard_of
        from django_tenantqueue.contrib.shards.routes import aliases, forget_pins

        forget_pins()
        tenant = self.random.choice(TENANTS)
        home = shard_of(tenant)
        target = next(alias for alias in aliases() if alias != home)
        began = time.monotonic()
        for _attempt in range(self.random.choice([0, 1, 1, 2, 3])):
            self._kill(lambda: move_tenant(tenant, target))
            if self.random.random() < 0.15:
                process = self._start(lambda: cancel_move(tenant))
                process.join()
        for _attempt in range(20):
            forget_pins()
            if shard_of(tenant) == target and not self._left():
                break
            process = self._start(lambda: move_tenant(tenant, target))
            process.join(PATIENCE_SECONDS)
            if process.exitcode is None:
                process.kill()
                raise TimeoutError(f"{tenant} has not moved to {target}")
        else:
            raise RuntimeError(f"{tenant} cannot move to {target}")
        self.seconds.append(time.monotonic() - began)

    def _left(self) -> list[Any]:
        from django_tenantqueue.contrib.shards.moving import list_moves

        return list_moves()

    def _start(self, act: Callable[[], object], nth: int = 0) -> Any:
        connections.close_all()
        process = FORK.Process(target=mover, args=(act, nth))
        process.start()
        return process

    def _kill(self, act: Callable[[], object]) -> None:
        """Start a mover and kill it at a random moment or commit; it may end before."""
        nth = self.random.randint(1, 60) if self.random.random() < 0.6 else 0
        process = self._start(act, nth)
        process.join(None if nth else self.random.uniform(0.0, 2.5))
        if process.exitcode is None:
            process.kill()
            process.join()
        self.kills += process.exitcode == -signal.SIGKILL


def wait_for_the_end() -> None:
    """Wait until all jobs have ended. Raises TimeoutError when their number stays the same."""
    left, since = unfinished(), time.monotonic()
    while left:
        time.sleep(0.2)
        now = unfinished()
        if now != left:
            left, since = now, time.monotonic()
        elif time.monotonic() - since > PATIENCE_SECONDS:
            raise TimeoutError(f"{left} jobs do not end:\n{stuck()}")


def stuck() -> str:
    from django_tenantqueue.contrib.shards.moving import list_moves
    from django_tenantqueue.contrib.shards.routes import aliases
    from django_tenantqueue.models import Job, TenantQueue

    lines = [f"not completed: {move}" for move in list_moves()]
    for alias in aliases():
        for queue in TenantQueue.objects.using(alias):
            jobs = Job.objects.using(alias).unfinished().filter(queue=queue)
            states = sorted(jobs.values_list("state", "held_by").annotate(count=Count("id")))
            lines.append(
                f"{alias}: {queue}, paused {queue.paused}, retired {queue.retired}, {states}"
            )
    return "\n".join(lines)


def unfinished() -> int:
    from django_tenantqueue.contrib.shards.routes import aliases
    from django_tenantqueue.models import Job

    return sum(Job.objects.using(alias).unfinished().count() for alias in aliases())


def perform(directory: Path, moves: int, seed: int) -> list[str]:
    """Run; return what is wrong."""
    from django_tenantqueue.contrib.shards.control import shard_of
    from django_tenantqueue.contrib.shards.routes import aliases
    from django_tenantqueue.models import Job, TenantQueue

    from .audit import faults

    names = {f"{tenant}/{line}": slots for tenant in TENANTS for line, slots in LINES.items()}
    for name, slots in names.items():
        tenant, line = name.split("/")
        TenantQueue.objects.using(shard_of(tenant)).create(
            tenant=tenant, name=line, num_slots=4 if line == "session" else slots
        )
    os.environ["TEST_MARKS"] = str(directory / "marks")
    (directory / "marks").touch()
    connections.close_all()
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "django", "runworker", f"--database={alias}", "--threads=6"],
            stdout=(directory / f"worker-{alias}.log").open("wb"),
            stderr=subprocess.STDOUT,
        )
        for alias in aliases()
    ]
    enqueuers = [
        FORK.Process(target=enqueuer, args=(directory, name)) for name in names for _ in range(2)
    ]
    run = Run(directory, seed)
    try:
        for process in enqueuers:
            process.start()
        for _ in range(moves):
            run.move()
            print(f"{len(run.seconds)} moves, {unfinished()} unfinished jobs", flush=True)
            if dead := [process.exitcode for process in enqueuers if process.exitcode]:
                raise RuntimeError(f"{len(dead)} enqueuers have failed")
        (directory / "stop").touch()
        for process in enqueuers:
            process.join(PATIENCE_SECONDS)
        wait_for_the_end()
    finally:
        (directory / "stop").touch()
        for process in enqueuers:
            if process.is_alive():
                process.kill()
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(30)
    counts = {
        name: int((directory / f"{name.replace('/', '-')}.count").read_text() or 0)
        for name in names
    }
    found = faults(directory / "marks", counts, names)
    stored = [
        job_id
        for alias in aliases()
        for job_id in Job.objects.using(alias).values_list("pk", flat=True)
    ]
    if len(stored) != len(set(stored)) or len(stored) != sum(counts.values()):
        found.append(
            f"{len(stored)} rows of {len(set(stored))} jobs are stored, and {sum(counts.values())} "
            "were enqueued"
        )
    found += [f"not completed: {move}" for move in run._left()]
    stops = [float(text) for text in _lines(directory / "stops")]
    print(
        f"{moves} moves with {run.kills} movers killed, {sum(counts.values())} jobs; a move with "
        f"its kills took {sum(run.seconds) / max(1, moves):.1f} s on average, at most "
        f"{max(run.seconds, default=0):.1f} s; an enqueue was rejected for up to "
        f"{max(stops, default=0):.1f} s"
    )
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    django.setup()
    with TemporaryDirectory() as directory:
        found = perform(Path(directory), options.moves, seed)
    for text in found:
        print(f"FAULT: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
