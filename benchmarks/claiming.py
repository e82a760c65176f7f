"""How long the two statements of a claim take, sent as a worker sends them, without the commit."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import psycopg

from django_tenantqueue.operations.claim import Claimer, Verdict
from django_tenantqueue.queries import claim as queries
from django_tenantqueue.queries import workers as worker_queries
from django_tenantqueue.queries.base import statement
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.queries.finish import Finished
from django_tenantqueue.queries.round_trip import Exchange, exchange
from django_tenantqueue.states import State
from django_tenantqueue.worker.connection import connect

from .bench import Bench
from .fill import add_waiting
from .measure import percentile
from .results import Incorrect

ROOM = 10
PATIENCE = 2_000


@dataclass(frozen=True, slots=True)
class ClaimTime:
    """Milliseconds of one pair of statements."""

    mean: float
    p50: float
    p95: float
    empty: int
    """Pairs that took nothing: they went on with the walk over queues that were all blocked."""


def register_worker(connection: psycopg.Connection[Any]) -> int:
    """Insert the row of a worker process that is this one, and return its id."""
    worker = worker_queries.NewWorker(
        name="benchmark",
        host="benchmark",
        pid=os.getpid(),
        supervisor_pid=os.getpid(),
        version="0",
        queues=(),
        exclude_queues=(),
        tenants=(),
        threads=1,
        async_slots=ROOM,
    )
    return worker_queries.insert_worker(connection, worker)


def measure_claims(bench: Bench, pairs: int) -> ClaimTime:
    """Claim ten jobs `pairs` times, as one worker process, and finish and replace them each time.

    The same number of jobs waits all the time, and dead rows gather as they do in life.
    """
    connection = connect("default", "benchmark")
    worker_id = register_worker(connection)
    claimer = Claimer(worker_id)
    taken: list[float] = []
    empty = 0
    try:
        while len(taken) < pairs:
            request = claimer.request(0, ROOM)
            connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED", prepare=True)
            began = time.perf_counter()
            params = queries.lock_params(request)
            looked = connection.execute(statement("lock_queues"), params, prepare=True).fetchone()
            params = queries.claim_params(request)
            claimed = connection.execute(statement("claim_jobs"), params, prepare=True).fetchall()
            taken.append((time.perf_counter() - began) * 1000)
            connection.execute("COMMIT", prepare=True)
            jobs = sorted((ClaimedJob(*row) for row in claimed), key=lambda job: job.nth_served)
            answer = Exchange(set(), set(), jobs, queries.as_look(looked, request))
            verdict = claimer.learn(request, answer)
            if not jobs:
                empty += 1
                if empty > PATIENCE:
                    raise Incorrect(f"{empty} claims took nothing; the last said {verdict}")
                if verdict is not Verdict.AGAIN:
                    time.sleep(min(0.05, claimer.wait_seconds))
                continue
            ended = [Finished(j.id, j.claim_seq, State.SUCCESS.value, 0.0) for j in jobs]
            ended.sort(key=lambda record: record.id)
            if len(exchange(connection, worker_id, finished=ended).finished) != len(jobs):
                raise Incorrect("a job that this process holds could not be finished")
            for job in jobs:
                claimer.places.finished(job.queue_id)
            add_waiting(bench.db, [job.queue_id for job in jobs], 1)
        worker_queries.delete_worker(connection, worker_id)
    finally:
        connection.close()
    # The first pairs pay for planning, once per connection.
    steady = taken[5:] or taken
    return ClaimTime(fmean(steady), percentile(steady, 50), percentile(steady, 95), empty)
