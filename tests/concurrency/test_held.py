"""A snapshot is held: the server cannot remove what jobs leave behind, and claims stay cheap."""

from __future__ import annotations

import time

import pytest

from django_tenantqueue.models import Job
from django_tenantqueue.operations import claim
from django_tenantqueue.operations.claim import Verdict
from django_tenantqueue.queries import claim as queries
from django_tenantqueue.queries import round_trip as round_trip_queries
from django_tenantqueue.queries import survey as survey_queries
from django_tenantqueue.queries.survey import Taken
from tests.concurrency.held import GONE, come_and_go
from tests.factories import (
    FakeWorker,
    make_blocked_queues,
    make_job,
    make_jobs,
    make_queue,
    state_of,
)


@pytest.fixture
def exact(monkeypatch) -> None:
    """Believe what is known of slots to the moment, and ask for it with each claim."""
    monkeypatch.setattr(survey_queries, "TAKEN_MARGIN_SECONDS", 0.0)


def survey_anew(worker: FakeWorker) -> None:
    """Survey; ids that are known by then are not looked at any more."""
    worker.claimer.surveys.leave()
    worker.survey()
    assert worker.claimer.surveys.is_active


def surveying(worker: FakeWorker) -> FakeWorker:
    """Let it find its claims costly, and survey."""
    worker.claim()
    assert worker.claimer.surveys.is_due
    worker.survey()
    assert worker.claimer.surveys.is_active
    return worker


def test_claim_reads_what_others_have_left_until_it_surveys(worker, snapshot):
    queue = make_queue()
    come_and_go(queue)

    assert worker.claim() == []
    entries = worker.look.entries
    worker.survey()
    assert worker.claim() == []

    assert entries >= GONE
    assert worker.look.entries < 50


def test_claim_reads_little_to_find_jobs_when_others_have_come_and_gone(worker, snapshot):
    queues = [make_queue(num_slots=50) for _ in range(3)]
    for queue in queues:
        come_and_go(queue, 4000)
    surveying(worker)
    for queue in queues:
        make_jobs(queue, 4)
    worker.claim_all()  # counts slots once
    ids = [job_id for queue in queues for job_id in make_jobs(queue, 4)]

    jobs = worker.claim_some(20)

    assert sorted(job.id for job in jobs) == ids
    assert len({job.queue_id for job in jobs[:3]}) == 3  # they take turns
    assert worker.look.entries < 200 + 3 * 4000  # what was queued within the margin is counted


def test_slots_are_counted_from_where_they_are_taken(worker, snapshot, exact):
    queue = make_queue(num_slots=3)
    long = make_job(queue, state="running").pk
    come_and_go(queue)
    surveying(worker)
    make_jobs(queue, 5)
    assert len(worker.claim_all()) == 5
    Job.objects.filter(pk=long).delete()
    make_jobs(queue, 1)
    assert len(worker.claim_and_finish()) == 1
    make_jobs(queue, 9)

    assert len(worker.claim()) == 3

    assert worker.look.entries < 100


def test_slot_that_was_taken_long_ago_counts(worker, snapshot, exact):
    queue = make_queue(num_slots=3)
    make_job(queue, state="running")
    come_and_go(queue)
    surveying(worker)
    make_jobs(queue, 12)

    taken = [len(worker.claim_and_finish()) for _ in range(3)]

    assert taken == [2, 2, 2]
    assert queue.pk in worker.claimer.request(10, 0).taken
    assert len(worker.claim()) == 2
    assert worker.claim() == []


def test_slots_that_another_worker_has_taken_meanwhile_count(worker_factory, snapshot, exact):
    queue = make_queue(num_slots=3)
    come_and_go(queue)
    worker, other = surveying(worker_factory()), worker_factory()
    make_jobs(queue, 9)
    worker.claim_and_finish()
    assert len(other.claim(2)) == 2

    assert len(worker.claim()) == 1
    assert Job.objects.active().count() == 3


def test_count_is_not_believed_when_the_clock_was_set_back(worker, snapshot, exact):
    queue = make_queue(num_slots=3)
    come_and_go(queue)
    surveying(worker)
    make_jobs(queue, 3, state="running")
    make_jobs(queue, 5)
    tomorrow = int(1e6 * (time.time() + 86_400))
    memory = worker.claimer.surveys
    memory._taken[queue.pk] = (memory._clock(), Taken(since=tomorrow, as_of=tomorrow))

    assert worker.claim() == []

    assert Job.objects.active().count() == 3


def exchange(worker: FakeWorker) -> round_trip_queries.Exchange:
    request = worker.claimer.request(2, 0)
    answer = round_trip_queries.exchange(worker.db, worker.id, request=request)
    worker.claimer.learn(request, answer)
    return answer


def test_jobs_of_a_queue_that_no_survey_has_seen_are_found(worker, snapshot):
    come_and_go(make_queue())
    surveying(worker)

    (better,) = make_jobs(make_queue(), 1, priority=120)
    (worse,) = make_jobs(make_queue(), 1, priority=300)

    assert [job.id for job in worker.claim_some()] == [better, worse]


def test_jobs_of_many_priorities_come_in_order_when_a_lane_has_them_all(worker, snapshot):
    """With PRIORITY_SCOPE = "tenant"."""
    queue = make_queue(num_slots=100)
    come_and_go(queue)
    surveying(worker)
    made = [
        (priority, job_id)
        for priority in (300, 120, 240)
        for job_id in make_jobs(queue, 3, priority=priority, lane=0)
    ]

    # no more than a claim takes is locked of each priority
    assert [job.id for job in worker.claim_all(2)] == [job_id for _, job_id in sorted(made)]


def test_survey_finds_what_claims_do_not_read_by_ids_when_too_many_jobs_came_at_once(
    worker, snapshot, monkeypatch
):
    monkeypatch.setattr(queries, "MOST_ARRIVALS", 20)
    queue = make_queue(num_slots=100)
    come_and_go(queue)
    surveying(worker)
    ids = [
        job_id for priority in range(200, 208) for job_id in make_jobs(queue, 9, priority=priority)
    ]

    by_ids = [job.id for job in worker.claim_all(10)]
    assert sorted(by_ids) == ids[-27:]  # the last 20, and what else is ready in their places

    worker.survey()

    assert sorted(by_ids + [job.id for job in worker.claim_all(10)]) == ids


def test_free_queue_is_reached_behind_more_full_ones_than_a_claim_looks_at(
    worker, snapshot, monkeypatch
):
    monkeypatch.setattr(claim, "MOST_LOCKS", 15)
    come_and_go(make_queue())
    surveying(worker)
    make_blocked_queues(200, priority=100)
    (free,) = make_jobs(make_queue(), 1, priority=200)
    survey_anew(worker)

    claims = [worker.claim(5) for _ in range(10)]

    assert [job.id for jobs in claims for job in jobs] == [free]


def test_older_jobs_come_first_when_newer_ones_came_while_their_queue_was_full(worker, snapshot):
    queue = make_queue(num_slots=1)
    come_and_go(queue)
    surveying(worker)
    ids = make_jobs(queue, 3)
    held = worker.claim_some()
    for _ in range(3):
        worker.claim()
        ids += make_jobs(queue, 1)

    served = [job.id for job in held]
    while held:
        worker.finish(held)
        held = worker.claim_some()
        served += [job.id for job in held]

    assert served == ids


def test_contended_places_are_not_looked_at_without_a_pause_when_there_are_too_many(
    worker, snapshot, open_connection, monkeypatch
):
    monkeypatch.setattr(claim, "MOST_LOCKS", 2)
    come_and_go(make_queue())
    surveying(worker)
    for _ in range(6):
        make_jobs(make_queue(), 1)
    survey_anew(worker)
    operator = open_connection()

    with operator.transaction():
        operator.execute("SELECT FROM tenantqueue_tenantqueue FOR NO KEY UPDATE")
        assert worker.claim() == []

    assert worker.verdict is Verdict.CONTENDED
    assert len(worker.claim_all()) == 6


def test_queue_that_is_full_is_looked_at_again_when_a_place_is_free(worker, snapshot, monkeypatch):
    queue = make_queue(num_slots=1)
    come_and_go(queue)
    surveying(worker)
    first, second = make_jobs(queue, 2)
    survey_anew(worker)
    held = worker.claim()
    for _ in range(2):  # it is found full, and then left alone
        assert worker.claim() == []
        assert worker.verdict is Verdict.BLOCKED

    worker.finish(held)

    assert [job.id for job in worker.claim()] == [second]
    assert state_of(first) == "success"
