"""Jobs of processes that died run again, on any worker that lives."""

import os
import signal

import pytest
from django.db import connection
from django.db.models import Sum

from django_tenantqueue.models import Change, Figure, Job, Worker
from django_tenantqueue.operations import control
from django_tenantqueue.states import State
from django_tenantqueue.stored_error import WORKER_DIED

from .tasks import async_hold, hold
from .workers import Gate, Workers, make_queue, wait_for_end, wait_for_state, wait_until


def died() -> list[tuple[str, str]]:
    """Return from where the deaths of workers were recorded, and why they died."""
    found = Change.objects.filter(action=Change.Action.DIE)
    return [(entry.source, entry.after["cause"]) for entry in found]


@pytest.mark.parametrize("task", [hold, async_hold])
def test_running_job_runs_again_when_its_process_is_killed(workers: Workers, gate: Gate, task):
    runner = workers.start()
    job = task.using(max_attempts=3).delay(str(gate))
    gate.wait_for(job)

    runner.children()[0].kill()
    gate.wait_for(job, attempt=2)
    gate.open()

    wait_for_state(job, State.SUCCESS)
    assert job.attempt == 2
    assert [error["class"] for error in job.errors] == [WORKER_DIED]
    assert "SIGKILL" in job.errors[0]["message"]
    wait_until(lambda: died() != [], what="the death is in the list of changes")
    ((source, cause),) = died()
    assert source == "worker"
    assert "ended with signal SIGKILL" in cause


def test_jobs_claimed_and_not_begun_lose_no_attempt_when_their_process_is_killed(
    workers: Workers, gate: Gate
):
    make_queue("acme", num_slots=10)
    runner = workers.start("--threads=1")
    first = hold.using(tenant="acme").delay(str(gate))
    gate.wait_for(first)
    # what a claim ahead would have put into the process's queue
    other = hold.using(tenant="acme").delay(str(gate))
    worker = runner.rows()[0]
    claimed = Job.objects.filter(pk=other.pk, state=State.READY).update(
        state=State.QUEUED,
        worker=worker,
        attempt=1,
        claim_seq=1,
        queued_at=first.refresh().queued_at,
    )
    assert claimed == 1

    runner.children()[0].kill()
    gate.wait_for(first, attempt=2)
    gate.open()

    wait_for_end([first.pk, other.pk])
    assert (first.refresh().attempt, other.refresh().attempt) == (2, 1)
    assert other.errors is None


def test_job_ends_in_error_when_it_killed_its_process_as_often_as_it_may(
    workers: Workers, gate: Gate
):
    runner = workers.start()
    job = hold.using(max_attempts=2).delay(str(gate))
    for attempt in (1, 2):
        gate.wait_for(job, attempt=attempt)
        runner.children()[0].kill()

    wait_for_state(job, State.ERROR)

    assert job.attempt == 2
    assert [error["attempt"] for error in job.errors] == [1, 2]
    # the rescue commits before it counts
    wait_until(lambda: lost(job) == {"retried": 1, "failed": 1}, what="both are in the figures")


def lost(job: Job) -> dict[str, int]:
    """Return what the figures of the job's queue count of deaths of workers."""
    rows = Figure.objects.filter(queue_id=job.queue_id, task=job.task, error=WORKER_DIED)
    return rows.aggregate(retried=Sum("retried"), failed=Sum("failed"))


def test_job_is_cancelled_when_its_process_dies_after_the_request(workers: Workers, gate: Gate):
    runner = workers.start(settings={"CANCEL_GRACE": 60.0})
    job = hold.delay(str(gate))
    gate.wait_for(job)
    assert control.cancel([job.pk]) == ([], [job.pk])

    runner.children()[0].kill()

    wait_for_state(job, State.CANCELLED)


def test_another_worker_runs_the_jobs_when_a_whole_group_is_killed(workers: Workers, gate: Gate):
    first = workers.start(processes=2)
    jobs = [hold.delay(str(gate)), async_hold.delay(str(gate))]
    gate.wait_for(*jobs)
    second = workers.start()

    os.killpg(first.process.pid, signal.SIGKILL)
    gate.wait_for(*jobs, attempt=2)
    gate.open()

    wait_for_end(job.pk for job in jobs)
    assert [job.refresh().attempt for job in jobs] == [2, 2]
    wait_until(lambda: Worker.objects.count() == len(second.rows()) == 1)


def test_nothing_is_rescued_when_supervisors_lose_their_connections(workers: Workers, gate: Gate):
    for _ in range(2):
        workers.start()
    jobs = [hold.delay(str(gate)) for _ in range(3)]
    gate.wait_for(*jobs)

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() "
            "AND application_name LIKE 'tenantqueue%%supervisor'"
        )
        assert cursor.fetchone() == (2,)
    workers_before = sorted(Worker.objects.values_list("pk", flat=True))

    def leases_are_held() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            return cursor.fetchone() == (2,)

    wait_until(leases_are_held)
    gate.open()

    wait_for_end(job.pk for job in jobs)
    assert [job.refresh().attempt for job in jobs] == [1, 1, 1]
    assert sorted(Worker.objects.values_list("pk", flat=True)) == workers_before


def test_process_ends_at_once_when_its_row_is_gone(workers: Workers, gate: Gate):
    runner = workers.start()
    (child,) = runner.children()
    Worker.objects.all().delete()

    wait_until(lambda: child.pid not in {c.pid for c in runner.children()}, timeout=15)

    runner.wait_until_signed_on(1)
    assert "taken for dead" in runner.output
