"""Atomic tasks: their writes and their success are committed together, once."""

import signal

import psycopg
import pytest
from django.db.models import Count

from django_tenantqueue.models import Job
from django_tenantqueue.queries.finish import return_jobs
from django_tenantqueue.states import State
from tests.testapp.models import Effect

from .tasks import write_after_commit, write_and_hold, write_slowly
from .workers import Gate, Workers, wait_for_end, wait_for_state, wait_until


def give_back_by_hand(database_url: str) -> int:
    """Give back what dead workers held, as rescue does; return how many jobs."""
    held = Job.objects.active().values_list("worker_id", "pk", "claim_seq")
    count = 0
    with psycopg.connect(database_url, autocommit=True) as connection:
        for worker_id, job_id, claim_seq in held:
            count += len(return_jobs(connection, worker_id, [(job_id, claim_seq)]))
    return count


@pytest.mark.heavy
def test_each_effect_is_there_once_when_workers_are_killed(workers: Workers, database_url: str):
    ids = [
        write_slowly.using(tenant=f"tenant {number % 5}", max_attempts=30).delay("once", 4).pk
        for number in range(300)
    ]
    done = Job.objects.filter(pk__in=ids, final=True)
    given_back = 0
    for _ in range(3):
        runner = workers.start("--threads=4", processes=2)
        before = done.count()
        wait_until(lambda before=before: done.count() >= before + 40)
        runner.send_all(signal.SIGKILL)
        runner.end()
        given_back += give_back_by_hand(database_url)
    workers.start()

    jobs = wait_for_end(ids)

    assert given_back > 0
    assert {job.state for job in jobs} == {State.SUCCESS}
    effects = Effect.objects.values("job_id").annotate(count=Count("id"))
    assert {row["job_id"]: row["count"] for row in effects} == dict.fromkeys(ids, 1)


def test_nothing_is_written_when_the_claim_was_lost_meanwhile(
    workers: Workers, gate: Gate, database_url: str
):
    first = workers.start("--queues=default")
    job = write_and_hold.delay(str(gate))
    gate.wait_for(job)
    assert give_back_by_hand(database_url) == 1
    workers.start()
    wait_until(lambda: job.refresh().claim_seq == 2)

    gate.open()

    wait_for_state(job, State.SUCCESS)
    first.send(signal.SIGTERM)
    assert first.end() == 0
    assert Effect.objects.filter(job_id=job.pk).count() == 1


def test_hooks_see_the_success_when_they_run_after_the_commit(workers: Workers):
    workers.start()

    job = write_after_commit.delay()

    wait_for_state(job, State.SUCCESS)
    wait_until(lambda: Effect.objects.filter(job_id=job.pk).exists())
    assert Effect.objects.get(job_id=job.pk).note == "seen after the commit: success"
    made = Job.objects.get(queue__tenant="made by an atomic task")
    wait_for_state(made, State.SUCCESS)


def test_hooks_and_jobs_are_dropped_when_the_task_fails(workers: Workers):
    workers.start()

    job = write_after_commit.delay(error=True)

    wait_for_state(job, State.ERROR)
    assert not Effect.objects.exists()
    assert not Job.objects.filter(queue__tenant="made by an atomic task").exists()
