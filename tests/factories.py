"""Rows for tests, and a worker that acts only when a test tells it to."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from django.db import connection
from django.utils import timezone

from django_tenantqueue import control
from django_tenantqueue.models import (
    Change,
    Duty,
    Figure,
    Job,
    QueueRate,
    TaskControl,
    TenantQueue,
    Worker,
)
from django_tenantqueue.operations.claim import Claimer, Filters, Verdict
from django_tenantqueue.operations.surveys import MOST_PLACES
from django_tenantqueue.queries import claim as queries
from django_tenantqueue.queries import figures as figure_queries
from django_tenantqueue.queries import finish as finish_queries
from django_tenantqueue.queries import round_trip as round_trip_queries
from django_tenantqueue.queries import survey as survey_queries
from django_tenantqueue.queries import workers as worker_queries
from django_tenantqueue.queries.base import statement
from django_tenantqueue.queries.claim import ClaimedJob, Look
from django_tenantqueue.queries.finish import Failed, Finished
from django_tenantqueue.states import ACTIVE, FINAL, State
from django_tenantqueue.worker.connection import connect

_numbers = itertools.count(1)
MORE_THAN_ENOUGH = 10_000
"""Statements after which a loop that waits for something to be claimed is given up."""


def make_queue(tenant: str | None = None, name: str = "default", **columns: Any) -> TenantQueue:
    """Make a tenant queue; the tenant is a new one unless it is named."""
    if tenant is None:
        tenant = f"tenant-{next(_numbers)}"
    return TenantQueue.objects.create(tenant=tenant, name=name, **columns)


def pause_task(task: Any, *, allow_unknown: bool = False) -> TaskControl:
    """Pause a task and return its control."""
    control.pause(task=task, allow_unknown=allow_unknown)
    return TaskControl.objects.get(task=getattr(task, "name", task))


def resume_task(task: Any) -> TaskControl | None:
    """Resume a task and return its control; None: it was not paused."""
    result = control.resume(task=task)
    return TaskControl.objects.filter(pk__in=result.changed).first()


def cap_task(task: Any, num_slots: Any, *, allow_unknown: bool = False) -> TaskControl:
    """Limit how many jobs of a task run at once; return its control."""
    control.tune(task=task, num_slots=num_slots, allow_unknown=allow_unknown)
    return TaskControl.objects.get(task=getattr(task, "name", task))


def make_jobs(
    queue: TenantQueue | int,
    count: int,
    *,
    state: str = State.READY,
    priority: int = 240,
    lane: int | None = None,
    worker_id: int = 9_999_999,
    **columns: Any,
) -> list[int]:
    """Insert jobs with raw SQL and return their ids; by default they are noop tasks, ready."""
    state = State(state)
    values: dict[str, Any] = {
        "queue_id": queue if isinstance(queue, int) else queue.pk,
        "priority": priority,
        "lane": priority if lane is None else lane,
        "state": state.value,
        "final": state in FINAL,
        "task": "tests.testapp.tasks.noop",
        "source_type": "task",
        "source_method": "tests.testapp.tasks.noop",
        "args": {"args": []},
        "max_attempts": 5,
    }
    if state in ACTIVE or state in FINAL:
        values |= {
            "worker_id": worker_id,
            "queued_at": timezone.now(),
            "attempt": 1,
            "claim_seq": 1,
        }
    if state in FINAL:
        values["finished_at"] = timezone.now()
    if state is State.HELD:
        values |= {"held_by": "session", "session_key": "somebody/else's"}
    values |= columns
    for name in ("args", "errors", "stats", "result", "context", "follow_ups"):
        if values.get(name) is not None:
            values[name] = json.dumps(values[name])
    names = ", ".join(values)
    marks = ", ".join(
        f"%({name})s::jsonb"
        if name in ("args", "errors", "stats", "result", "context", "follow_ups")
        else f"%({name})s"
        for name in values
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO tenantqueue_job ({names}) SELECT {marks} "
            "FROM generate_series(1, %(count)s) RETURNING id",
            {**values, "count": count},
        )
        return [row[0] for row in cursor.fetchall()]


def make_blocked_queues(count: int, *, priority: int) -> None:
    """Make full and paused queues, by halves, each with three ready jobs."""
    made = TenantQueue.objects.bulk_create(
        TenantQueue(tenant=f"blocked-{number}", num_slots=1, paused=number % 2 == 0)
        for number in range(count)
    )
    values = {"priority": priority, "queues": [queue.pk for queue in made]}
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tenantqueue_job_hot (queue_id, lane, priority, task, source_type, "
            "source_method) SELECT id, %(priority)s, %(priority)s, 'noop', 'task', 'noop' "
            "FROM unnest(%(queues)s) id, generate_series(1, 3)",
            values,
        )
        cursor.execute(
            "INSERT INTO tenantqueue_job_hot (queue_id, lane, priority, task, source_type, "
            "source_method, state, worker_id, queued_at) SELECT id, 1, 1, 'noop', 'task', 'noop', "
            "'running', 999999, now() FROM tenantqueue_tenantqueue "
            "WHERE id = ANY (%(queues)s) AND NOT paused",
            values,
        )


def make_spent_queues(count: int, *, priority: int) -> list[TenantQueue]:
    """Make queues that have used up their rates, each with a ready job."""
    made = TenantQueue.objects.bulk_create(
        TenantQueue(tenant=f"spent-{number}", max_per_second=0.001, burst=1)
        for number in range(count)
    )
    QueueRate.objects.bulk_create(
        QueueRate(queue=queue, debt=1.0, as_of=timezone.now()) for queue in made
    )
    for queue in made:
        make_jobs(queue, 1, priority=priority)
    return made


def make_job(queue: TenantQueue | int | None = None, **columns: Any) -> Job:
    """Insert one job, see make_jobs(); in a new queue unless one is given."""
    (job_id,) = make_jobs(make_queue() if queue is None else queue, 1, **columns)
    return Job.objects.get(pk=job_id)


def state_of(job_id: int) -> str:
    """Return the state of a job; fails when its id stands in no leaf or in two."""
    return Job.objects.values_list("state", flat=True).get(pk=job_id)


def states_of(ids: Iterable[int]) -> dict[int, str]:
    """Return the states of jobs by id; fails when an id stands in two leaves."""
    rows = list(Job.objects.filter(pk__in=list(ids)).values_list("pk", "state"))
    found = dict(rows)
    assert len(found) == len(rows), "an id stands in two leaves"
    return found


class Clock:
    """A clock that tests turn."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time that the test has set."""
        return self.now


def make_worker(**columns: Any) -> Worker:
    """Insert the row of a worker process that nobody runs."""
    now = timezone.now()
    values: dict[str, Any] = {
        "name": "web-1:100",
        "host": "web-1",
        "pid": 100,
        "supervisor_pid": 99,
        "version": "0.1.0",
        "started_at": now - timedelta(hours=3, minutes=5),
        "heartbeat_at": now,
        "threads": 4,
        "async_slots": 100,
        **columns,
    }
    return Worker.objects.create(**values)


def make_duty(name: str = "promote", **columns: Any) -> Duty:
    values: dict[str, Any] = {
        "worker": "web-1",
        "ran_at": timezone.now(),
        "duration_seconds": 0.012,
        "runs": 1234,
        **columns,
    }
    return Duty.objects.create(name=name, **values)


def make_figure(queue: TenantQueue | None = None, *, error: str = "", **columns: Any) -> Figure:
    """Insert what happened in this minute to the noop tasks of a queue, or of all."""
    values: dict[str, Any] = {
        **dict.fromkeys(figure_queries.NUMBERS, 0),
        "queue_id": queue.pk if queue else figure_queries.ALL,
        "at": timezone.now().replace(second=0, microsecond=0),
        "task": "tests.testapp.tasks.noop",
        "error": error,
        "minutes": 1,
        "waits": [],
        "runs": [],
        **columns,
    }
    return Figure.objects.create(**values)


def register_worker(db: psycopg.Connection[Any], **changes: Any) -> int:
    """Insert a row for a worker process and return its id."""
    values: dict[str, Any] = {
        "name": f"worker-{next(_numbers)}",
        "host": "here",
        "pid": 1,
        "supervisor_pid": 1,
        "version": "0",
        "queues": (),
        "exclude_queues": (),
        "tenants": (),
        "threads": 8,
        "async_slots": 100,
        **changes,
    }
    return worker_queries.insert_worker(db, worker_queries.NewWorker(**values))


class FakeWorker:
    """Claims and finishes on a worker's own connection, one statement at a time, as told."""

    surveys = False
    """It surveys before each claim."""

    def __init__(
        self,
        filters: Filters | None = None,
        *,
        clock: Clock | None = None,
        db: psycopg.Connection[Any] | None = None,
    ) -> None:
        self.db = db or connect("default", "test")
        # A real worker stores again what a locked row has held up; this one waits for longer.
        self.db.execute("SET lock_timeout = '10s'")
        self.id = self._register()
        if clock is None:
            self.claimer = Claimer(self.id, filters)
        else:
            self.claimer = Claimer(self.id, filters, clock=clock)
        self.look: Look | None = None
        self.verdict: Verdict | None = None

    def _register(self) -> int:
        """Insert its row, however long autovacuum has the emptied table locked to truncate it."""
        for _ in range(20):
            try:
                return register_worker(self.db)
            except psycopg.errors.LockNotAvailable:
                pass
        self.db.close()
        raise AssertionError("the table of workers stays locked")

    def claim(
        self, room: int = 10, room_async: int = 0, *, finished: Sequence[ClaimedJob] = ()
    ) -> list[ClaimedJob]:
        """Send one claim, with the ends of `finished`; `look` and `verdict` tell what it saw."""
        for job in finished:
            self.claimer.places.finished(job.queue_id)
        if self.surveys:
            self.survey()
        request = self.claimer.request(room, room_async)
        answer = round_trip_queries.exchange(
            self.db,
            self.id,
            finished=[success(job) for job in sorted_by_id(finished)],
            request=request,
        )
        assert len(answer.finished) == len(finished)
        self.look = answer.look
        self.verdict = self.claimer.learn(request, answer)
        return answer.jobs

    def claim_some(self, room: int = 10) -> list[ClaimedJob]:
        """Claim until something is taken, or a claim has shown that nothing is to be had."""
        while not (jobs := self.claim(room)) and self.verdict is Verdict.AGAIN:
            pass
        return jobs

    def claim_and_finish(self, room: int = 10) -> list[ClaimedJob]:
        jobs = self.claim_some(room)
        self.finish(jobs)
        return jobs

    def claim_all(self, room: int = 10) -> list[ClaimedJob]:
        """Claim and finish until a claim has shown that nothing is to be had; return all jobs."""
        served: list[ClaimedJob] = []
        held: list[ClaimedJob] = []
        for _ in range(MORE_THAN_ENOUGH):
            held = self.claim(room, finished=held)
            served += held
            if not held and self.verdict is not Verdict.AGAIN:
                return served
        raise AssertionError("the claims do not come to an end")

    @contextmanager
    def open_claim(self, room: int = 10) -> Iterator[list[ClaimedJob]]:
        """Claim in a transaction that stays open inside the with block, and commit it after."""
        with self.db.transaction():
            self.lock_queues(room)
            yield self.take(room)

    def survey(self) -> None:
        """Look for all places where jobs are ready, as a claim loop does when that is due."""
        found = survey_queries.survey_ready(self.db, MOST_PLACES)
        self.claimer.surveys.surveyed(found, seconds=0.001)

    def lock_queues(self, room: int = 10) -> None:
        """Send the first half of a claim, inside an open transaction."""
        if self.surveys:
            self.survey()
        self._request = self.claimer.request(room, 0)
        params = queries.lock_params(self._request)
        self.db.execute(statement("lock_queues"), params, prepare=True)

    def take(self, room: int = 10) -> list[ClaimedJob]:
        """Send the second half of a claim."""
        params = queries.claim_params(self._request)
        rows = self.db.execute(statement("claim_jobs"), params, prepare=True).fetchall()
        return sorted((ClaimedJob(*row) for row in rows), key=lambda job: job.nth_served)

    def finish(self, jobs: Sequence[ClaimedJob], state: str = State.SUCCESS) -> set[int]:
        """Finish claimed jobs; return the ids that were this worker's to finish."""
        for job in jobs:
            self.claimer.places.finished(job.queue_id)
        done = [success(job, state) for job in sorted_by_id(jobs)]
        return round_trip_queries.exchange(self.db, self.id, finished=done).finished

    def finish_inside(self, jobs: Sequence[ClaimedJob]) -> None:
        params = finish_queries.finish_params(
            self.id, [success(job) for job in sorted_by_id(jobs)], 10
        )
        assert self.db.execute(statement("finish_jobs"), params).rowcount == len(jobs)

    def fail(self, jobs: Sequence[ClaimedJob], delay: float = 0.0) -> set[int]:
        """Put claimed jobs back for another attempt; return the ids that were this worker's."""
        failed = [
            Failed(job.id, job.claim_seq, delay, '{"error": {"message": "it failed"}}')
            for job in sorted_by_id(jobs)
        ]
        return round_trip_queries.exchange(self.db, self.id, failed=failed).rescheduled

    def give_back(self, jobs: Sequence[ClaimedJob]) -> set[int]:
        """Give claimed jobs back uncounted; return the ids that were this worker's."""
        return finish_queries.return_jobs(
            self.db, self.id, [(job.id, job.claim_seq) for job in jobs]
        )

    def close(self) -> None:
        self.db.close()


def success(job: ClaimedJob, state: str = State.SUCCESS) -> Finished:
    return Finished(job.id, job.claim_seq, State(state).value, 0.0)


def sorted_by_id(jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
    """Return jobs in the order in which their rows are locked."""
    return sorted(jobs, key=lambda job: job.id)


def made_changes() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return (action, before, after) of all entries of the audit trail, the oldest first."""
    changes = Change.objects.order_by("pk")
    return list(changes.values_list("action", "before", "after"))
