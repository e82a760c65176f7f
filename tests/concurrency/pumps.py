"""A worker's pump whose jobs end when and how a test says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from django_tenantqueue.exceptions import TenantQueueError, UnknownTask
from django_tenantqueue.operations.outcome import judge
from django_tenantqueue.operations.run import Outcome
from django_tenantqueue.operations.running import RunningJob
from django_tenantqueue.queries.claim import Failed, Finished
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.connection import connect
from django_tenantqueue.worker.pump import Pump
from tests.factories import register_worker
from tests.timing import TooLate

SECONDS = 8.0
"""Longest wait for something that happens at once; shorter than a worker's sleep."""


class FakeExecutor:
    """Keeps the jobs it is given."""

    def __init__(self) -> None:
        self.jobs: list[RunningJob] = []
        self.revoked: list[RunningJob] = []
        self.interrupted: list[tuple[RunningJob, type[TenantQueueError]]] = []
        self.can_revoke = False

    def submit(self, jobs: list[RunningJob]) -> None:
        """Keep jobs."""
        self.jobs += jobs

    def revoke(self, running: RunningJob) -> bool:
        """Give a job back if the test allows it."""
        if self.can_revoke and running.started is None:
            self.jobs.remove(running)
            self.revoked.append(running)
            return True
        return False

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        """Note that a job is to be stopped."""
        self.interrupted.append((running, error))


class FakePump:
    """A real pump, turned by the test, with an executor that runs nothing."""

    def __init__(self, threads: int = 8, **options: Any) -> None:
        connection = connect("default", "test")
        self.id = register_worker(
            connection, queues=options.get("queues", ()), tenants=options.get("tenants", ())
        )
        config = WorkerConfig("default", "test", threads=threads, async_slots=8, **options)
        self.pump = Pump(config, self.id, connection, lambda: connect("default", "test"))
        self.executor = FakeExecutor()
        self.pump.flight.threads = self.executor
        self.pump.flight.loop = self.executor

    def turn_until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        """Turn the pump as a worker does until the condition holds."""
        end = time.monotonic() + seconds
        while True:
            pause = self.pump.run_once()
            if condition():
                return
            if time.monotonic() >= end:
                raise TooLate("the pump does not get there")
            self.pump.wait(min(pause, end - time.monotonic()))

    def turn_until_asleep(self) -> None:
        """Turn the pump until it has nothing to do for seconds."""
        pause = 0.0
        end = time.monotonic() + SECONDS
        while pause < 1.0:
            if time.monotonic() >= end:
                raise TooLate("the pump does not fall asleep")
            self.pump.wait(pause)
            pause = self.pump.run_once()

    def take(self, count: int) -> list[RunningJob]:
        """Turn the pump until the executor has so many jobs, and return them as started."""
        self.turn_until(lambda: len(self.executor.jobs) >= count)
        for running in self.executor.jobs:
            running.started = running.started or time.monotonic()
        return list(self.executor.jobs)

    def end(self, running: RunningJob, *, result: str | None = None, **changes: Any) -> None:
        """Report the success of a run; `result` is JSON text."""
        claimed = running.claimed
        running.ended = time.monotonic()
        self.executor.jobs.remove(running)
        record = Finished(claimed.id, claimed.claim_seq, "success", 0.1, result, **changes)
        self.pump.report(running, Outcome(finished=record))

    def fail(self, running: RunningJob, extra: str) -> None:
        """Report a failure that is to be repeated."""
        claimed = running.claimed
        running.ended = time.monotonic()
        self.executor.jobs.remove(running)
        record = Failed(claimed.id, claimed.claim_seq, 5.0, extra)
        self.pump.report(running, Outcome(failed=record))

    def give_back(self, running: RunningJob, error: UnknownTask) -> None:
        """Report that the task of a job is not known."""
        running.ended = time.monotonic()
        self.executor.jobs.remove(running)
        self.pump.report(running, judge(running, None, error))

    def close(self) -> None:
        """Close the connection and the pipe."""
        if not self.pump.connection.closed:
            # the server takes a moment until it frees a lock of a connection that was closed
            with suppress(psycopg.Error):
                self.pump.lookout.leave(self.pump.connection)
            self.pump.connection.close()
        self.pump.waiter.close()


@contextmanager
def turned_pump(**options: Any) -> Iterator[FakePump]:
    """Yield a pump and close it."""
    made = FakePump(**options)
    try:
        yield made
    finally:
        made.close()
