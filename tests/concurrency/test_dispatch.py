"""A dispatcher's claim loop: what it sends, gives back and lets go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from django_tenantqueue import executors
from django_tenantqueue.executors import Claim, RemoteExecutor
from django_tenantqueue.models import Job, TenantQueue
from django_tenantqueue.operations import control
from django_tenantqueue.queries.workers import take_over
from django_tenantqueue.states import State
from django_tenantqueue.worker.child.dispatch import DispatchLoop
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.connection import connect
from tests.concurrency.loops import SECONDS
from tests.factories import make_job, make_queue, register_worker
from tests.timing import TooLate


class Broker(RemoteExecutor):
    """Keeps what is sent, unless it is down."""

    def __init__(self) -> None:
        super().__init__("celery", {})
        self.claims: list[Claim] = []
        self.attempts = 0
        self.is_down = False

    def send(self, claims: Sequence[Claim]) -> None:
        self.attempts += 1
        if self.is_down:
            raise ConnectionError("no broker")
        self.claims += claims

    def ping(self) -> None:
        if self.is_down:
            raise ConnectionError("no broker yet")


class Dispatcher:
    """A real loop, turned by the test."""

    def __init__(self) -> None:
        connection = connect("default", "test")
        self.id = register_worker(connection, role="dispatcher", executor="celery")
        self.broker = Broker()
        config = WorkerConfig("default", "test", threads=8, async_slots=8, dispatch="celery")
        self.loop = DispatchLoop(
            self.broker, config, self.id, connection, lambda: connect("default", "test")
        )

    def turn_until(self, condition: Any) -> None:
        end = executors.time.monotonic() + SECONDS
        while not condition():
            if executors.time.monotonic() > end:
                raise TooLate("the dispatcher does not get there")
            self.loop.wait(min(0.05, self.loop.run_once()))

    def close(self) -> None:
        self.broker.close()
        self.loop.connection.close()
        self.loop.waiter.close()


@pytest.fixture
def queue() -> TenantQueue:
    return make_queue("acme", "celery", num_slots=3, executor="celery")


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Dispatcher]:
    """Yield a dispatcher whose broker is asked again soon."""
    monkeypatch.setattr(executors, "PAUSES", (0.01,))
    made = Dispatcher()
    yield made
    made.close()


def state_of(job: Job) -> tuple[str, int, int | None]:
    """Return a job's state, its attempts, and whose it is."""
    job.refresh()
    return str(job.state), job.attempt, job.worker_id


def test_slots_limit_what_is_sent(dispatcher: Dispatcher, queue: TenantQueue):
    jobs = [make_job(queue) for _ in range(5)]
    broker = dispatcher.broker

    dispatcher.turn_until(lambda: len(broker.claims) == 3)
    dispatcher.turn_until(lambda: dispatcher.loop.run_once() > 0)

    assert [claim.job_id for claim in broker.claims] == [job.pk for job in jobs[:3]]
    assert state_of(jobs[0]) == (State.QUEUED, 1, dispatcher.id)


def test_jobs_are_given_back_uncounted_while_the_broker_is_down(
    dispatcher: Dispatcher, queue: TenantQueue
):
    job, broker = make_job(queue), dispatcher.broker
    broker.is_down = True

    dispatcher.turn_until(lambda: broker.attempts and state_of(job)[0] == State.READY)
    for _ in range(20):  # it claims nothing more
        dispatcher.loop.wait(min(0.01, dispatcher.loop.run_once()))

    assert state_of(job) == (State.READY, 0, None)
    assert broker.attempts == 1

    broker.is_down = False
    dispatcher.turn_until(lambda: broker.claims)
    assert state_of(job) == (State.QUEUED, 1, dispatcher.id)


def test_job_that_was_taken_over_is_let_go(
    dispatcher: Dispatcher, queue: TenantQueue, worker_factory: Any
):
    process = worker_factory()
    job = make_job(queue)
    dispatcher.turn_until(lambda: dispatcher.broker.claims)
    (claim,) = dispatcher.broker.claims

    taken = take_over(process.db, process.id, [(claim.job_id, claim.worker_id, claim.claim_seq)])
    dispatcher.turn_until(lambda: not len(dispatcher.loop.claimed_jobs))

    assert [one.claimed.id for one in taken] == [job.pk]
    assert state_of(job) == (State.RUNNING, 1, process.id)


def test_others_are_claimed_soon_when_jobs_are_taken_over(
    dispatcher: Dispatcher, worker_factory: Any
):
    process, loop = worker_factory(), dispatcher.loop
    queue = make_queue("acme", "celery", num_slots=None, executor="celery")
    jobs = [make_job(queue) for _ in range(12)]
    dispatcher.turn_until(lambda: len(dispatcher.broker.claims) == 8)  # all that it may have sent
    claims = [(one.job_id, one.worker_id, one.claim_seq) for one in dispatcher.broker.claims]
    assert len(take_over(process.db, process.id, claims)) == 8
    loop.next_claim.put_off(600.0)

    dispatcher.turn_until(lambda: len(dispatcher.broker.claims) == 12)

    assert {claim.job_id for claim in dispatcher.broker.claims} == {job.pk for job in jobs}


def test_sent_job_of_a_queue_that_is_paused_is_given_back(
    dispatcher: Dispatcher, queue: TenantQueue
):
    job = make_job(queue)
    dispatcher.turn_until(lambda: dispatcher.broker.claims)

    control.pause([queue.pk])
    dispatcher.turn_until(lambda: state_of(job)[0] == State.READY)

    assert state_of(job) == (State.READY, 0, None)


def test_sent_job_ends_when_it_is_cancelled(dispatcher: Dispatcher, queue: TenantQueue):
    job = make_job(queue)
    dispatcher.turn_until(lambda: dispatcher.broker.claims)

    control.cancel([job.pk])
    dispatcher.turn_until(lambda: state_of(job)[0] == State.CANCELLED)
