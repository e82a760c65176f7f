"""A worker's claim loop whose jobs end when and how a test says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django_tenantqueue.exceptions import TenantQueueError, UnknownTask
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.outcome import judge
from django_tenantqueue.execution.run import Outcome
from django_tenantqueue.queries.finish import Failed, Finished
from django_tenantqueue.worker.child.loop import ClaimLoop
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.connection import connect
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
        self.jobs += jobs

    def revoke(self, running: RunningJob) -> bool:
        if self.can_revoke and running._started is None:
            self.jobs.remove(running)
            self.revoked.append(running)
            return True
        return False

    def interrupt(self, running: RunningJob, error: type[TenantQueueError]) -> None:
        self.interrupted.append((running, error))


class FakeLoop:
    """A real claim loop, turned by the test, with an executor that runs nothing."""

    def __init__(self, threads: int = 8, **options: Any) -> None:
        connection = connect("default", "test")
        self.id = register_worker(
            connection, queues=options.get("queues", ()), tenants=options.get("tenants", ())
        )
        config = WorkerConfig("default", "test", threads=threads, async_slots=8, **options)
        self.claim_loop = ClaimLoop(config, self.id, connection, lambda: connect("default", "test"))
        self.executor = FakeExecutor()
        self.claim_loop.claimed_jobs.threads = self.executor
        self.claim_loop.claimed_jobs.loop = self.executor

    def turn_until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        end = time.monotonic() + seconds
        while True:
            pause = self.claim_loop.run_once()
            if condition():
                return
            if time.monotonic() >= end:
                raise TooLate("the claim loop does not get there")
            self.claim_loop.wait(min(pause, end - time.monotonic()))

    def turn_until_asleep(self) -> None:
        """Turn the claim loop until it has nothing to do for seconds."""
        pause = 0.0
        end = time.monotonic() + SECONDS
        while pause < 1.0:
            if time.monotonic() >= end:
                raise TooLate("the claim loop does not fall asleep")
            self.claim_loop.wait(pause)
            pause = self.claim_loop.run_once()

    def take(self, count: int) -> list[RunningJob]:
        """Turn the claim loop until the executor has so many jobs, and return them as started."""
        self.turn_until(lambda: len(self.executor.jobs) >= count)
        for running in self.executor.jobs:
            running._started = running._started or time.monotonic()
        return list(self.executor.jobs)

    def end(self, running: RunningJob, *, result: str | None = None, **changes: Any) -> None:
        """Report the success of a run; `result` is JSON text."""
        claimed = running._claimed
        running._ended = time.monotonic()
        self.executor.jobs.remove(running)
        record = Finished(claimed.id, claimed.claim_seq, "success", 0.1, result, **changes)
        self.claim_loop.report(running, Outcome(finished=record))

    def fail(self, running: RunningJob, extra: str) -> None:
        claimed = running._claimed
        running._ended = time.monotonic()
        self.executor.jobs.remove(running)
        record = Failed(claimed.id, claimed.claim_seq, 5.0, extra)
        self.claim_loop.report(running, Outcome(failed=record))

    def give_back(self, running: RunningJob, error: UnknownTask) -> None:
        """Report that the task of a job is not known."""
        running._ended = time.monotonic()
        self.executor.jobs.remove(running)
        self.claim_loop.report(running, judge(running, None, error))

    def close(self) -> None:
        if not self.claim_loop.connection.closed:
            self.claim_loop.connection.close()
        self.claim_loop.waiter.close()


@contextmanager
def turned_loop(**options: Any) -> Iterator[FakeLoop]:
    made = FakeLoop(**options)
    try:
        yield made
    finally:
        made.close()
