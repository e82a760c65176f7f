"""What follows a job is enqueued with its end, once, or not at all."""

from __future__ import annotations

import json

from django_tenantqueue import Placeholder, current_job, group, task
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.run import run_sync
from django_tenantqueue.models import Job
from django_tenantqueue.operations.gates import release
from tests.concurrency.loops import turned_loop
from tests.factories import make_queue, state_of
from tests.testapp.models import Effect
from tests.testapp.tasks import add, noop, write_effect

RESULT = Placeholder("result")


@task(name="follow_ups.outcomes")
def outcomes() -> list[list[object]]:
    summary = current_job().summary
    assert summary is not None
    return [[job.state, job.result] for job in summary.details()]


def followers(job_id: int) -> list[str]:
    return list(
        Job.objects.filter(previous_id=job_id).order_by("pk").values_list("state", flat=True)
    )


def test_nothing_follows_when_the_claim_was_lost(worker_factory):
    job = noop.using(tenant="a", on_success=noop.call(), on_end=noop.call()).delay()
    first, second = worker_factory(), worker_factory()
    (lost,) = first.claim()
    first.give_back([lost])
    (claimed,) = second.claim()

    assert first.finish([lost]) == set()
    assert followers(job.pk) == []

    assert second.finish([claimed]) == {job.pk}
    assert second.finish([claimed]) == set()
    assert followers(job.pk) == ["ready", "ready"]


def test_each_job_of_a_grouped_finish_is_followed_once(worker):
    make_queue("a", num_slots=None)
    ids = noop.using(tenant="a", on_success=noop.using(tenant="b").call()).enqueue_many([()] * 40)
    plain = noop.using(tenant="a").enqueue_many([()] * 40)

    worker.finish(worker.claim_some(100))

    after = list(Job.objects.filter(queue__tenant="b").values_list("previous_id", flat=True))
    assert sorted(after) == ids
    assert {state_of(job_id) for job_id in plain} == {"success"}


def test_nothing_follows_when_the_finish_is_rolled_back(worker):
    job = noop.using(tenant="a", on_success=noop.call()).delay()
    claimed = worker.claim()

    with worker.db.transaction(force_rollback=True):
        worker.finish_inside(claimed)

    assert followers(job.pk) == []
    assert worker.finish(claimed) == {job.pk}
    assert followers(job.pk) == ["ready"]


def test_follow_up_is_part_of_the_transaction_of_an_atomic_task(worker):
    job = write_effect.using(tenant="a", on_success=noop.using(session="s").call()).delay("x")
    (claimed,) = worker.claim()

    outcome = run_sync(RunningJob(claimed), worker.id)

    assert outcome.stored
    (follow_up,) = outcome.follow_ups
    assert follow_up.gates.session == "a/s"
    assert Effect.objects.count() == 1
    assert followers(job.pk) == ["held"]


def test_nothing_follows_an_atomic_task_that_lost_its_claim(worker):
    job = write_effect.using(tenant="a", on_success=noop.call()).delay("x")
    (claimed,) = worker.claim()
    worker.give_back([claimed])

    assert run_sync(RunningJob(claimed), worker.id).lost

    assert followers(job.pk) == []


def test_worker_takes_the_follow_up_of_its_own_job_at_once():
    with turned_loop() as loop:
        job = add.using(
            tenant="a", on_success=add.using(tenant="b", session="s").call(RESULT)
        ).delay(1)
        (running,) = loop.take(1)

        loop.end(running, result="1")

        (follow_up,) = loop.take(1)
        assert follow_up.tenant == "b"
        assert follow_up._previous_result is not None
        assert follow_up._previous_result.result == "1"  # read with those of its batch
        assert followers(job.pk) == ["queued"]


def test_sleeping_worker_is_woken_for_the_follow_up_that_its_neighbour_does_not_take():
    with turned_loop(tenants=("a",)) as loop, turned_loop(tenants=("b",)) as other:
        noop.using(tenant="a", on_success=noop.using(tenant="b").call()).delay()
        (running,) = loop.take(1)
        other.turn_until_asleep()

        loop.end(running)
        loop.turn_until(lambda: Job.objects.filter(queue__tenant="b").exists())

        other.turn_until(lambda: other.executor.jobs)


def test_slots_of_each_tenant_count_for_the_links_of_chains(worker):
    make_queue("a", num_slots=3)
    make_queue("b", num_slots=1)
    noop.using(tenant="a", on_success=noop.using(tenant="b").call()).enqueue_many([()] * 3)
    worker.finish(worker.claim_some(10))

    (first,) = worker.claim_some(10)

    assert Job.objects.ready().count() == 2
    assert worker.claim_some(10) == []
    worker.finish([first])
    (second,) = worker.claim_some(10)
    assert first.id < second.id


def test_callback_of_a_thousand_sees_each_outcome_in_order(worker):
    make_queue("a", num_slots=None)
    calls = (noop.call() for _ in range(1000))
    monitor = group(calls).using(tenant="a").delay(on_end=outcomes)
    ids = list(monitor.details().order_by("pk").values_list("pk", flat=True))
    while jobs := worker.claim_some(300):
        failed = [job for job in jobs if job.id % 10 == 0]
        worker.finish(failed, "error")
        worker.finish([job for job in jobs if job.id % 10])
        release("default", {"monitor": {str(monitor.pk)}})
        if state_of(monitor.anchor_id) == "ready":
            break

    (callback,) = worker.claim_some(10)
    outcome = run_sync(RunningJob(callback), worker.id)

    assert callback.id == monitor.anchor_id
    expected = [["success" if job_id % 10 else "error", None] for job_id in ids]
    assert json.loads(outcome.finished.result) == expected
