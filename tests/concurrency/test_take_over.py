"""A job that was sent is taken over once, by a process that lives, if its claim still stands."""

from __future__ import annotations

import psycopg

from django_tenantqueue.executors import Claim
from django_tenantqueue.models import TenantQueue, Worker
from django_tenantqueue.operations import control
from django_tenantqueue.operations.claim import Filters
from django_tenantqueue.operations.rescue import _death_of as death_of
from django_tenantqueue.operations.rescue import rescue_worker
from django_tenantqueue.queries.workers import take_over
from django_tenantqueue.worker import remote
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.connection import connect
from tests.concurrency.loops import SECONDS
from tests.factories import make_job, make_queue, register_worker
from tests.process.workers import wait_until

CELERY = Filters(executor="celery")


def send(dispatcher):
    queue = make_queue("acme", "celery", executor="celery")
    job = make_job(queue)
    (claimed,) = dispatcher.claim_some()
    assert claimed.id == job.pk
    return job, (claimed.id, dispatcher.id, claimed.claim_seq)


def test_executors_do_not_serve_each_others_queues(worker_factory):
    worker, dispatcher = worker_factory(), worker_factory(CELERY)
    job, _sent = send(dispatcher)
    ours = make_job()
    assert [one.id for one in worker.claim_all()] == [ours.pk]
    assert job.refresh().worker_id == dispatcher.id


def test_second_message_finds_the_job_taken(worker_factory):
    dispatcher, first, second = worker_factory(CELERY), worker_factory(), worker_factory()
    job, sent = send(dispatcher)
    assert [one.claimed.id for one in take_over(first.db, first.id, [sent])] == [job.pk]
    assert take_over(second.db, second.id, [sent]) == []
    assert take_over(first.db, first.id, [sent]) == []
    assert (job.refresh().worker_id, job.state) == (first.id, "running")


def test_claim_that_was_given_back_is_not_taken_over(worker_factory):
    dispatcher, process = worker_factory(CELERY), worker_factory()
    _job, sent = send(dispatcher)
    dispatcher.db.execute(
        "UPDATE tenantqueue_job_hot SET claim_seq = claim_seq + 1 WHERE id = %s", [sent[0]]
    )
    assert take_over(process.db, process.id, [sent]) == []


def test_cancelled_and_paused_jobs_are_not_taken_over(worker_factory):
    dispatcher, process = worker_factory(CELERY), worker_factory()
    job, sent = send(dispatcher)
    queue = TenantQueue.objects.get(executor="celery")
    control.pause([queue.pk])
    assert take_over(process.db, process.id, [sent]) == []
    control.resume([queue.pk])
    control.cancel([job.pk])
    assert take_over(process.db, process.id, [sent]) == []


def test_process_that_was_taken_for_dead_takes_nothing_over(worker_factory):
    dispatcher, process = worker_factory(CELERY), worker_factory()
    _job, sent = send(dispatcher)
    Worker.objects.filter(pk=process.id).delete()
    assert take_over(process.db, process.id, [sent]) == []


def test_death_of_a_dispatcher_costs_no_attempt(worker_factory):
    dispatcher = worker_factory(CELERY)
    job, _sent = send(dispatcher)
    Worker.objects.filter(pk=dispatcher.id).update(role="dispatcher", executor="celery")
    rescued = rescue_worker("default", dispatcher.id, death_of("default", dispatcher.id))
    assert rescued.returned == [job.pk]
    assert (job.refresh().attempt, job.state) == (0, "ready")


def test_take_over_whose_answer_is_lost_runs_nothing_and_gives_the_job_back(
    worker_factory, monkeypatch
):
    job, sent = send(worker_factory(CELERY))
    connection = connect("default", "test")
    process = register_worker(connection, role="runner", executor="celery")
    config = WorkerConfig("default", "test", threads=0, async_slots=0)
    loop = remote.TakeLoop(config, process, connection, lambda: connect("default", "test"))

    def lose_the_answer(connection, *args):
        monkeypatch.undo()
        assert len(take_over(connection, *args)) == 1
        connection.close()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(remote.queries, "take_over", lose_the_answer)
    taken = loop.want(Claim(*sent))

    def turned(condition):
        loop.run_once()
        return condition()

    wait_until(lambda: turned(taken.done), SECONDS)
    assert taken.result() is None  # another message may have it
    wait_until(lambda: turned(lambda: job.refresh().state == "ready"), SECONDS)
    loop.close()
    loop.waiter.close()
