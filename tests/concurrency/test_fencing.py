"""Guarantee 6: who lost a claim writes nothing."""

from __future__ import annotations

import pytest
from django.db import connection

from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from django_tenantqueue.queries import finish as finish_queries
from django_tenantqueue.queries.finish import RunRecord
from django_tenantqueue.states import State
from tests.factories import make_job, make_jobs, make_queue, state_of

WRITES = {
    "finish": lambda worker, job: worker.finish([job]),
    "fail": lambda worker, job: worker.fail([job], 5.0),
    "give back": lambda worker, job: worker.give_back([job]),
    "record": lambda worker, job: finish_queries.record_runs(
        worker.db, worker.id, [RunRecord(job.id, job.claim_seq, 1.0, '{"done": 7}')]
    ),
}
each_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


def row(job_id):
    with connection.cursor() as cursor:
        cursor.execute("SELECT job::text FROM tenantqueue_job job WHERE id = %s", [job_id])
        (found,) = cursor.fetchall()
    return found


@each_write
def test_claim_is_written_when_it_stands(worker, write):
    make_job()
    (job,) = worker.claim()

    assert write(worker, job) == {job.id}


@each_write
def test_nothing_is_written_when_the_claim_number_is_old(worker, write):
    make_job()
    (old,) = worker.claim()
    worker.give_back([old])
    (new,) = worker.claim()
    assert new.claim_seq > old.claim_seq
    before = row(new.id)

    assert write(worker, old) == set()
    assert row(new.id) == before


@each_write
def test_nothing_is_written_when_the_job_is_another_workers(worker_factory, write):
    make_job()
    owner, thief = worker_factory(), worker_factory()
    (job,) = owner.claim()
    before = row(job.id)

    assert write(thief, job) == set()
    assert row(job.id) == before


@pytest.mark.parametrize("end", ["finish", "fail"])
@each_write
def test_nothing_is_written_when_the_job_has_finished_or_waits_again(worker, write, end):
    make_job()
    (job,) = worker.claim()
    WRITES[end](worker, job)
    before = row(job.id)

    assert write(worker, job) == set()
    assert row(job.id) == before


@each_write
def test_own_claims_are_written_when_one_of_the_group_was_lost(worker_factory, write):
    ids = make_jobs(make_queue(), 3)
    owner, other = worker_factory(), worker_factory()
    jobs = owner.claim()
    owner.give_back([jobs[1]])
    other.claim()

    written = [write(owner, job) for job in jobs]

    assert written == [{ids[0]}, set(), {ids[2]}]


def test_claim_number_rises_when_a_job_is_returned_failed_or_retried(worker):
    make_job()
    numbers = []
    for again in (worker.give_back, worker.fail):
        jobs = worker.claim()
        numbers.append(jobs[0].claim_seq)
        again(jobs)
    (job,) = worker.claim()
    numbers.append(job.claim_seq)
    worker.finish([job], State.ERROR)
    control.retry([job.id])
    numbers.append(worker.claim()[0].claim_seq)

    assert numbers == [1, 2, 3, 4]


def test_attempt_is_not_counted_when_a_job_is_returned(worker):
    job_id = make_job().pk

    worker.give_back(worker.claim())

    returned = Job.objects.get(pk=job_id)
    assert (returned.state, returned.attempt, returned.worker_id) == ("ready", 0, None)


def test_returned_job_waits_when_a_delay_was_asked_for(worker):
    job_id = make_job().pk
    (job,) = worker.claim()

    finish_queries.return_jobs(worker.db, worker.id, [(job.id, job.claim_seq)], delay_seconds=15.0)

    returned = Job.objects.get(pk=job_id)
    assert (returned.state, returned.attempt) == ("scheduled", 0)


def test_claim_is_returned_when_an_older_one_of_its_job_is_returned_with_it(worker):
    make_job()
    worker.give_back(worker.claim())
    (job,) = worker.claim()

    claims = [(job.id, job.claim_seq), (job.id, job.claim_seq - 1)]

    assert finish_queries.return_jobs(worker.db, worker.id, claims) == {job.id}


@pytest.mark.parametrize("write", ["fail", "give back"])
def test_claim_stays_when_its_job_was_cancelled_meanwhile(worker, write):
    job_id, other_id = make_job().pk, make_job().pk
    jobs = worker.claim(2)
    control.cancel([job_id])

    assert WRITES[write](worker, jobs[0]) == set()
    assert WRITES[write](worker, jobs[1]) == {other_id}

    kept = Job.objects.get(pk=job_id)
    assert (kept.state, kept.worker_id, kept.attempt) == ("queued", worker.id, 1)


UNKNOWN = '{"class": "UnknownTask", "message": "no such task"}'
OTHER = '{"class": "ValueError", "message": "other"}'


@pytest.mark.parametrize(
    ("reasons", "kept"),
    [
        ([None], None),
        ([UNKNOWN], ["UnknownTask"]),
        ([UNKNOWN, None, UNKNOWN, UNKNOWN], ["UnknownTask"]),
        ([UNKNOWN, OTHER, UNKNOWN, UNKNOWN], ["UnknownTask", "ValueError", "UnknownTask"]),
        ([UNKNOWN, OTHER, UNKNOWN, OTHER], ["ValueError", "UnknownTask", "ValueError"]),
    ],
)
def test_reason_is_kept_once_in_a_row_when_a_job_is_returned(worker, reasons, kept):
    job_id = make_job().pk
    for reason in reasons:
        (job,) = worker.claim()
        claim = (job.id, job.claim_seq)
        errors = {} if reason is None else {claim: reason}
        assert finish_queries.return_jobs(
            worker.db, worker.id, [claim], errors=errors, max_errors=3
        )

    job = Job.objects.get(pk=job_id)
    found = None if job.errors is None else [error["class"] for error in job.errors]
    assert found == kept
    assert job.attempt == 0


def test_group_is_finished_when_it_holds_a_claim_that_never_was(worker):
    make_job()
    (job,) = worker.claim()
    forged = job._replace(id=job.id + 1000)

    assert worker.finish([job, forged]) == {job.id}
    assert state_of(job.id) == "success"
