"""Enqueue, claim, finish, fail, return, cancel, retry and tune in any order, against a model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from django_tenantqueue.operations.claim import Claimer, Verdict
from django_tenantqueue.queries import finish as finish_queries
from django_tenantqueue.queries import round_trip as round_trip_queries
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.queries.control import promote_jobs
from django_tenantqueue.queries.finish import Failed, Finished, RunRecord
from tests.factories import make_jobs, make_queue

WORKERS = (11, 12)
PRIORITIES = (100, 200, 300)
ACTIVE = ("queued", "running")


@dataclass
class ModelQueue:
    """What the machine knows of a tenant queue."""

    slots: int
    paused: bool = False


@dataclass
class ModelJob:
    """What the machine knows of a job."""

    queue: int
    priority: int
    max_attempts: int
    state: str = "ready"
    attempt: int = 0
    claim_seq: int = 0
    worker: int | None = None
    asked: bool = False
    """An operator wants it to end."""
    claims: list[ClaimedJob] = field(default_factory=list)

    def row(self) -> tuple[object, ...]:
        """Return the columns that the database must hold."""
        return (
            self.queue,
            self.priority,
            self.state,
            self.attempt,
            self.claim_seq,
            self.worker if self.state in ACTIVE else None,
        )


class Machine(RuleBasedStateMachine):
    """One database, two workers, three queues."""

    def __init__(self) -> None:
        super().__init__()
        self.savepoint = connection.savepoint()
        self.jobs: dict[int, ModelJob] = {}
        self.queues: dict[int, ModelQueue] = {}
        self.claimers = {worker: Claimer(worker) for worker in WORKERS}

    def teardown(self) -> None:
        transaction.savepoint_rollback(self.savepoint)

    @initialize(slots=st.lists(st.integers(0, 3), min_size=3, max_size=3))
    def make_queues(self, slots: list[int]) -> None:
        self.queues = {make_queue(num_slots=count).pk: ModelQueue(count) for count in slots}

    def draw(self, data: st.DataObject, *states: str) -> tuple[int, ModelJob]:
        wanted = [job_id for job_id, job in self.jobs.items() if job.state in states]
        job_id = data.draw(st.sampled_from(sorted(wanted)))
        return job_id, self.jobs[job_id]

    def has(self, *states: str) -> bool:
        return any(job.state in states for job in self.jobs.values())

    def taken(self, queue: int) -> int:
        return sum(job.queue == queue and job.state in ACTIVE for job in self.jobs.values())

    def claimable(self) -> list[tuple[int, int]]:
        """Return (lane, queue) of the best ready job of each queue that has a free slot."""
        best: dict[int, int] = {}
        for job in self.jobs.values():
            queue = self.queues[job.queue]
            if job.state == "ready" and not queue.paused and self.taken(job.queue) < queue.slots:
                best[job.queue] = min(job.priority, best.get(job.queue, job.priority))
        return [(lane, queue) for queue, lane in best.items()]

    @rule(data=st.data(), priority=st.sampled_from(PRIORITIES), most=st.integers(1, 3))
    def enqueue(self, data: st.DataObject, priority: int, most: int) -> None:
        queue = data.draw(st.sampled_from(sorted(self.queues)))
        for job_id in make_jobs(queue, 2, priority=priority, max_attempts=most):
            self.jobs[job_id] = ModelJob(queue, priority, most)

    @rule(worker=st.sampled_from(WORKERS), room=st.integers(1, 6))
    def claim(self, worker: int, room: int) -> None:
        """Claim once, going on while the walk is unfinished and nothing was taken."""
        claimer = self.claimers[worker]
        claimer.places.forget_blocked()
        open_queues = self.claimable()
        while True:
            request = claimer.request(room, 0)
            answer = round_trip_queries.exchange_in_transaction("default", worker, request=request)
            verdict = claimer.learn(request, answer)
            if answer.jobs or verdict is not Verdict.AGAIN:
                break
        assert bool(answer.jobs) == bool(open_queues)
        assert len(answer.jobs) <= room
        if open_queues:
            assert answer.jobs[0].lane == min(open_queues)[0]
        for claimed in answer.jobs:
            self.check_claim(claimed, worker)

    def check_claim(self, claimed: ClaimedJob, worker: int) -> None:
        """Follow a claim: it must be the best job of a queue with a free slot."""
        job = self.jobs[claimed.id]
        queue = self.queues[job.queue]
        ready = [
            (other.priority, job_id)
            for job_id, other in self.jobs.items()
            if other.queue == job.queue and other.state == "ready"
        ]
        assert min(ready) == (job.priority, claimed.id)
        assert not queue.paused
        assert self.taken(job.queue) < queue.slots
        job.state, job.worker = "queued", worker
        job.attempt += 1
        job.claim_seq += 1
        assert (claimed.attempt, claimed.claim_seq) == (job.attempt, job.claim_seq)
        job.claims.append(claimed)

    @precondition(lambda self: self.has(*ACTIVE))
    @rule(data=st.data(), state=st.sampled_from(["success", "error", "cancelled"]))
    def finish(self, data: st.DataObject, state: str) -> None:
        job_id, job = self.draw(data, *ACTIVE)
        done = Finished(job_id, job.claim_seq, state, 0.0)
        answer = round_trip_queries.exchange_in_transaction(
            "default", job.worker or 0, finished=[done]
        )
        assert answer.finished == {job_id}
        job.state = state

    @precondition(lambda self: self.has(*ACTIVE))
    @rule(data=st.data(), delay=st.sampled_from([0.0, 1000.0]))
    def fail(self, data: st.DataObject, delay: float) -> None:
        job_id, job = self.draw(data, *ACTIVE)
        if job.attempt >= job.max_attempts:
            return
        failed = Failed(job_id, job.claim_seq, delay, '{"error": {"message": "no"}}')
        answer = round_trip_queries.exchange_in_transaction(
            "default", job.worker or 0, failed=[failed]
        )
        assert answer.rescheduled == (set() if job.asked else {job_id})
        if not job.asked:
            job.state = "scheduled" if delay else "ready"

    @precondition(lambda self: self.has(*ACTIVE))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        job_id, job = self.draw(data, *ACTIVE)
        claim = (job_id, job.claim_seq)
        returned = finish_queries.return_jobs(connection.connection, job.worker or 0, [claim])
        assert returned == (set() if job.asked else {job_id})
        if not job.asked:
            job.state = "ready"
            job.attempt -= 1

    @precondition(lambda self: self.has(*ACTIVE))
    @rule(data=st.data())
    def record(self, data: st.DataObject) -> None:
        job_id, job = self.draw(data, *ACTIVE)
        runs = [RunRecord(job_id, job.claim_seq, 0.1, None)]
        assert finish_queries.record_runs(connection.connection, job.worker or 0, runs) == {job_id}
        job.state = "running"

    @precondition(lambda self: any(job.claims for job in self.jobs.values()))
    @rule(data=st.data(), worker=st.sampled_from(WORKERS))
    def write_late(self, data: st.DataObject, worker: int) -> None:
        """Finish and return a claim that may have been lost: then nothing is written."""
        claimed_once = sorted(job_id for job_id, job in self.jobs.items() if job.claims)
        job = self.jobs[data.draw(st.sampled_from(claimed_once))]
        old = data.draw(st.sampled_from(job.claims))
        if job.state in ACTIVE and (job.worker, job.claim_seq) == (worker, old.claim_seq):
            return
        done = Finished(old.id, old.claim_seq, "success", 0.0)
        answer = round_trip_queries.exchange_in_transaction("default", worker, finished=[done])
        claim = (old.id, old.claim_seq)
        assert answer.finished == set()
        assert finish_queries.return_jobs(connection.connection, worker, [claim]) == set()

    @precondition(lambda self: bool(self.jobs))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Cancel some jobs, whatever their states."""
        ids = data.draw(st.lists(st.sampled_from(sorted(self.jobs)), max_size=3))
        cancelled, asked = control.cancel(ids)
        for job_id in set(ids):
            job = self.jobs[job_id]
            assert (job_id in cancelled) == (job.state in ("ready", "scheduled"))
            assert (job_id in asked) == (job.state in ACTIVE)
            job.asked = job.asked or job_id in asked
            if job_id in cancelled:
                job.state = "cancelled"

    @precondition(lambda self: bool(self.jobs))
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        """Retry some jobs, whatever their states."""
        ids = data.draw(st.lists(st.sampled_from(sorted(self.jobs)), max_size=3))
        retried = control.retry(ids)
        for job_id in set(ids):
            job = self.jobs[job_id]
            assert (job_id in retried) == (job.state in ("error", "cancelled"))
            if job_id in retried:
                job.state, job.attempt, job.asked = "ready", 0, False

    @precondition(lambda self: self.has("scheduled"))
    @rule()
    def promote(self) -> None:
        promote_jobs("default", most=1000, now=timezone.now() + timedelta(days=1))
        for job in self.jobs.values():
            if job.state == "scheduled":
                job.state = "ready"

    @precondition(lambda self: bool(self.jobs))
    @rule(data=st.data(), priority=st.sampled_from(PRIORITIES))
    def change_priority(self, data: st.DataObject, priority: int) -> None:
        """Change the priority of a job, whatever its state."""
        job_id = data.draw(st.sampled_from(sorted(self.jobs)))
        job = self.jobs[job_id]
        changed = control.change_priority([job_id], priority)
        assert bool(changed) == (job.state in ("ready", "scheduled"))
        if changed:
            job.priority = priority

    @rule(data=st.data(), slots=st.integers(0, 3), paused=st.booleans())
    def tune(self, data: st.DataObject, slots: int, paused: bool) -> None:
        queue = data.draw(st.sampled_from(sorted(self.queues)))
        control.tune_queue(queue, num_slots=slots, paused=paused)
        self.queues[queue] = ModelQueue(slots, paused)

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        """No job is lost, doubled, or in another state; attempts are counted."""
        rows = Job.objects.values_list(
            "pk", "queue_id", "priority", "state", "attempt", "claim_seq", "worker_id"
        )
        seen: Counter[int] = Counter()
        for job_id, *row, worker in rows:
            seen[job_id] += 1
            expected = self.jobs[job_id].row()
            assert (*row, worker if row[2] in ACTIVE else None) == expected
        assert seen == dict.fromkeys(self.jobs, 1)


@pytest.mark.heavy
@pytest.mark.django_db
def test_rows_follow_the_model_when_anything_happens_in_any_order():
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
