"""A process with several workers: real claim loops, jobs that take a while and do nothing.

``python -m benchmarks.crew ORDERS`` (JSON), started by fleet.py. It says "ready", then answers each
line of its standard input with one line of JSON; the end of the input ends it.

A worker here is the package's own claim loop on a connection of its own, in a thread of its own,
with a row of its own. Only what runs the jobs is a stand-in: it lets the time pass that a job
takes, so that hundreds of workers fit on one machine and the machine's cores are left to the
database.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import django

from .results import Orders, Told

django.setup()

from django.db import connections  # noqa: E402

from django_tenantqueue.exceptions import TenantQueueError  # noqa: E402
from django_tenantqueue.execution.current_job import RunningJob  # noqa: E402
from django_tenantqueue.execution.outcome import Outcome, success  # noqa: E402
from django_tenantqueue.queries import workers as worker_queries  # noqa: E402
from django_tenantqueue.worker.child.loop import ClaimLoop  # noqa: E402
from django_tenantqueue.worker.config import WorkerConfig  # noqa: E402
from django_tenantqueue.worker.connection import connect  # noqa: E402
from django_tenantqueue.worker.supervisor.lease import PROBE_SECONDS, Lease  # noqa: E402
from django_tenantqueue.worker.supervisor.maintenance import Maintenance  # noqa: E402

NEVER = float("inf")
"""When nothing is due (monotonic time)."""
LONGEST_WAIT = 60.0


class Places:
    """An executor with a number of places. A job stays in its place for `seconds`.

    Turned by the thread of its claim loop. Times are those of an executor that never waits for it:
    a job begins when it was handed out, or when the one before it in its place ended.
    """

    def __init__(self, size: int, seconds: float, claim_loop: ClaimLoop) -> None:
        self.begun: list[tuple[int, float]] = []
        """(job id, monotonic time) of each start."""
        self._seconds = seconds
        self._claim_loop = claim_loop
        self._waiting: deque[RunningJob] = deque()
        self._running: deque[tuple[float, RunningJob]] = deque()
        self._free_since = [0.0] * size

    @property
    def next_at(self) -> float:
        """When the next job ends."""
        return self._running[0][0] if self._running else NEVER

    def submit(self, jobs: list[RunningJob]) -> None:
        """Take jobs, and begin those that find a place."""
        self._waiting += jobs
        self._begin(time.monotonic())

    def revoke(self, running: RunningJob) -> bool:
        """Take back a job that was not begun; False when it is too late."""
        if running._started is not None:
            return False
        self._waiting.remove(running)
        return True

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Let it be: no job here has a time limit."""

    def turn(self) -> None:
        """End and begin what is due."""
        now = time.monotonic()
        while self._running and self._running[0][0] <= now:
            ended, running = self._running.popleft()
            running._ended = ended
            self._free_since.append(ended)
            self._begin(now)
            self._claim_loop.report(running, Outcome(finished=success(running, None)))

    def _begin(self, now: float) -> None:
        while self._waiting and self._free_since:
            running = self._waiting.popleft()
            running._started = max(self._free_since.pop(0), running._claimed_at or now)
            if running._on_begin is not None:
                running._on_begin()
            self.begun.append((running.id, running._started))
            # all take equally long, so that they end in the order in which they began
            self._running.append((running._started + self._seconds, running))


@dataclass(frozen=True, slots=True)
class Trip:
    """One round trip that claimed, with its commit and the work around it."""

    at: float
    seconds: float
    jobs: int


class MeteredLoop(ClaimLoop):
    """A claim loop that notes how long its claims take."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.trips: list[Trip] = []
        self._exchange = self.round_trip.exchange
        self.round_trip.exchange = self._metered_exchange  # type: ignore[method-assign]

    def _metered_exchange(self, connection: Any, *, claim: bool) -> bool:
        before, began = len(self.claimed_jobs), time.monotonic()
        answered = self._exchange(connection, claim=claim)
        if claim:
            taken = len(self.claimed_jobs) - before
            self.trips.append(Trip(began, time.monotonic() - began, taken))
        return answered


class OneWorker:
    """One worker: its row, its claim loop, and what runs its jobs."""

    def __init__(self, orders: Orders, name: str) -> None:
        config = WorkerConfig("default", name, threads=orders.threads)
        description = worker_queries.NewWorker(
            name=name,
            host="benchmark",
            pid=os.getpid(),
            supervisor_pid=os.getpid(),
            version="0",
            queues=(),
            exclude_queues=(),
            tenants=(),
            threads=config.threads,
            async_slots=config.async_slots,
        )
        self.supervisor = OneSupervisor(name) if orders.supervised else None
        connection = connect("default", name)
        if self.supervisor is not None:
            worker_id = self.supervisor.lease.register(description)
        else:
            worker_id = worker_queries.insert_worker(connection, description)
        self.claim_loop = MeteredLoop(
            config, worker_id, connection, lambda: connect("default", name)
        )
        self.places = Places(config.threads, orders.seconds, self.claim_loop)
        self.claim_loop.claimed_jobs.threads = self.places
        self.claim_loop.claimed_jobs.loop = Places(
            config.async_slots, orders.seconds, self.claim_loop
        )
        self.ending = False
        self.thread = threading.Thread(target=self._drive, name=name)

    def _drive(self) -> None:
        try:
            while not self.ending:
                pause = self.claim_loop.run_once()
                left = self.places.next_at - time.monotonic()
                self.claim_loop.wait(min(pause, left, LONGEST_WAIT))
                self.places.turn()
            for running in self.claim_loop.claimed_jobs.unfinished():
                self.claim_loop.claimed_jobs.to_return(running, 0.0)  # no supervisor gives it back
            self.claim_loop.abandon()
            self.claim_loop.close()
        except BaseException as error:  # noqa: BLE001 a fleet with a dead worker measures nothing
            print(f"{self.thread.name}: {error!r}", file=sys.stderr, flush=True)
            os._exit(70)
        finally:
            connections.close_all()

    def end(self) -> None:
        """Ask it to give back what it holds and to sign off."""
        self.ending = True
        self.claim_loop.waiter.wake()


class OneSupervisor:
    """What the supervisor of one worker does to the server while nothing happens."""

    def __init__(self, name: str) -> None:
        self.lease = Lease("default", name)
        self._maintenance = Maintenance(self.lease)
        self._due = self._maintain_at = time.monotonic()

    def run_once(self, now: float) -> float:
        """Do what is due; return when it is due again."""
        if self._due <= now:
            self.lease.check()
            if self._maintain_at <= now:
                self._maintain_at = now + self._maintenance.run_once()
            self._due = min(now + PROBE_SECONDS, self._maintain_at)
        return self._due

    def close(self) -> None:
        """Let the locks go."""
        self._maintenance.resign()
        self._maintenance.close()
        self.lease.close()


class Crew:
    """The workers of this process, and their supervisors in one thread."""

    def __init__(self, orders: Orders) -> None:
        self._workers: list[OneWorker] = []
        for number in range(orders.workers):
            self._workers.append(OneWorker(orders, f"{orders.name}.{number}"))
        self._ended = threading.Event()
        self._supervising = threading.Thread(target=self._supervise, name="supervisors")
        for worker in self._workers:
            worker.thread.start()
        self._supervising.start()

    def _supervise(self) -> None:
        supervisors = [w.supervisor for w in self._workers if w.supervisor is not None]
        while supervisors and not self._ended.is_set():
            soonest = NEVER
            for supervisor in supervisors:
                soonest = min(soonest, supervisor.run_once(time.monotonic()))
                # as unevenly as they would be started on their machines
                self._ended.wait(PROBE_SECONDS / len(supervisors) / 2)
            self._ended.wait(max(0.0, soonest - time.monotonic()))
        for supervisor in supervisors:
            supervisor.close()
        connections.close_all()

    def tell(self, since: float) -> Told:
        """Return what has happened since then (monotonic time)."""
        trips = [[t for t in list(w.claim_loop.trips) if t.at >= since] for w in self._workers]
        begun = [pair for w in self._workers for pair in list(w.places.begun) if pair[1] >= since]
        return Told(
            least_claims=min(map(len, trips)),
            claims=sum(map(len, trips)),
            empty_claims=sum(not t.jobs for some in trips for t in some),
            seconds=[t.seconds for some in trips for t in some],
            begun=begun,
        )

    def end(self) -> None:
        """Let all workers sign off."""
        for worker in self._workers:
            worker.end()
        for worker in self._workers:
            worker.thread.join()
        self._ended.set()
        self._supervising.join()


def main(arguments: Sequence[str]) -> int:
    """Run a crew until its input ends."""
    crew = Crew(Orders(**json.loads(arguments[0])))
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(asdict(crew.tell(float(line)))), flush=True)
    crew.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
