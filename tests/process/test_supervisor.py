"""The supervisor and its children: who dies with whom, who is replaced, who does maintenance."""

import signal
from datetime import timedelta

import psutil
import pytest
from django.db import connection

from django_tenantqueue.models import Job
from django_tenantqueue.queries.locks import LockKey
from django_tenantqueue.states import State
from tests.testapp.tasks import noop

from .tasks import exit_quietly, hold
from .workers import Gate, Workers, make_queue, wait_for_end, wait_for_state, wait_until

BACKENDS = """
    SELECT pid, application_name FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
"""


def backends() -> dict[int, str]:
    """Return the application names of all connections to the database by the server's pids."""
    with connection.cursor() as cursor:
        cursor.execute(BACKENDS)
        return dict(cursor.fetchall())


def maintainers() -> list[int]:
    """Return the server's pids of the connections that hold the lock of the maintenance."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [LockKey.MAINTENANCE],
        )
        return [pid for (pid,) in cursor.fetchall()]


def test_few_connections_are_open_when_two_children_run_noop_tasks(workers: Workers):
    before = set(backends())
    make_queue("acme", num_slots=1000)
    ids = noop.using(tenant="acme").enqueue_many([()] * 3000)
    workers.start(processes=2)
    finished = Job.objects.filter(pk__in=ids, final=True)
    most: dict[int, str] = {}

    def done() -> bool:
        nonlocal most
        most = max(most, {p: n for p, n in backends().items() if p not in before}, key=len)
        return finished.count() == len(ids) and bool(maintainers())

    wait_until(done, timeout=30)
    # and when it is idle
    noop.delay()
    wait_until(lambda: done() and not Job.objects.unfinished().exists())

    assert len(most) <= 2 + 2, most
    assert sum(name.startswith("tenantqueue") for name in most.values()) >= 2 + 1


def test_children_are_gone_when_their_supervisor_is_killed(workers: Workers, gate: Gate):
    runner = workers.start(processes=2)
    job = hold.delay(str(gate))
    gate.wait_for(job)
    children = runner.children()
    assert len(children) == 2

    runner.send(signal.SIGKILL)

    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


def test_a_child_is_replaced_when_it_was_killed(workers: Workers):
    runner = workers.start(processes=2)
    killed, other = runner.children()

    killed.kill()
    wait_until(lambda: killed.pid not in {child.pid for child in runner.children()})
    runner.wait_until_signed_on(2)

    assert other.pid in {child.pid for child in runner.children()}
    assert f"child {killed.pid} ended with signal SIGKILL" in runner.output
    other.kill()
    job = noop.delay()
    wait_for_end([job.pk])
    runner.wait_until_signed_on(2)
    runner.send(signal.SIGTERM)
    assert runner.end() == 0


def test_maintenance_goes_to_the_other_supervisor_when_its_holder_is_killed(workers: Workers):
    first = workers.start()
    wait_until(lambda: len(maintainers()) == 1)
    holder = maintainers()
    workers.start()

    first.send(signal.SIGKILL)
    job = noop.using(run_at=timedelta(seconds=0.3)).delay()
    assert job.state == State.SCHEDULED

    wait_for_state(job, State.SUCCESS)
    wait_until(lambda: len(maintainers()) == 1)
    assert maintainers() != holder


def test_one_supervisor_does_maintenance_when_several_run(workers: Workers):
    for _ in range(3):
        workers.start()
    jobs = [noop.using(run_at=timedelta(seconds=0.2)).delay() for _ in range(10)]

    wait_for_end(job.pk for job in jobs)

    assert len(maintainers()) == 1


def test_scheduled_jobs_wait_when_no_worker_does_maintenance(workers: Workers):
    workers.start("--no-maintenance")
    job = noop.using(run_at=timedelta(seconds=0.05)).delay()
    after = noop.using(run_at=timedelta(seconds=0)).delay()

    wait_for_end([noop.delay().pk])

    assert maintainers() == []
    assert job.refresh().state == State.SCHEDULED
    assert after.refresh().state in (State.READY, State.SCHEDULED, State.SUCCESS)


def test_child_is_replaced_when_a_task_has_ended_its_process(workers: Workers):
    workers.start("--threads=2")

    job = wait_for_state(exit_quietly.using(max_attempts=1).delay(), State.ERROR)

    assert job.last_error["message"] == "its worker process ended with exit code 0"
    wait_for_state(noop.delay(), State.SUCCESS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1])
@pytest.mark.parametrize("processes", [1, 2])
def test_child_is_replaced_when_it_alone_was_told_to_end(
    workers: Workers, number: signal.Signals, processes: int
):
    runner = workers.start(processes=processes)
    before = {child.pid for child in runner.children()}
    (told, *others) = runner.children()

    told.send_signal(number)

    wait_until(lambda: told.pid not in {child.pid for child in runner.children()})
    runner.wait_until_signed_on(processes)
    assert {child.pid for child in others} == before & {child.pid for child in runner.children()}
    assert f"child {told.pid} ended with exit code 0; replaced" in runner.output
    wait_for_end([noop.delay().pk])
    runner.send(signal.SIGTERM)
    assert runner.end() == 0


def test_job_loses_no_attempt_when_its_child_alone_is_told_to_end(workers: Workers, gate: Gate):
    runner = workers.start("--shutdown-timeout=0.2")
    job = hold.using(max_attempts=1).delay(str(gate))
    gate.wait_for(job)
    (told,) = runner.children()

    told.send_signal(signal.SIGTERM)
    wait_until(lambda: told.pid not in {child.pid for child in runner.children()})
    gate.open()

    assert wait_for_state(job, State.SUCCESS).attempt == 1
    assert runner.process.poll() is None
