"""What operators and probes see and ask of running workers."""

import json
import signal
import time

from django.db import connection

from django_tenantqueue.models import Duty, Worker
from django_tenantqueue.operations import worker_control
from django_tenantqueue.states import State
from tests.testapp.tasks import noop
from tests.timing import assert_within

from .tasks import block_alone, hold
from .workers import Gate, Workers, wait_for_state, wait_until

ACTS_WITHIN = 2.0


def test_worker_ends_within_two_seconds_when_an_operator_drains_it(workers: Workers):
    runner = workers.start(processes=2)
    first, second = runner.rows()

    began = time.monotonic()
    worker_control.drain([first.pk])
    wait_until(lambda: len(runner.children()) == 1, what="one child has ended")

    assert_within(ACTS_WITHIN, time.monotonic() - began)
    wait_until(lambda: [row.pk for row in runner.rows()] == [second.pk])
    time.sleep(1.5)  # nobody takes its place
    assert len(runner.children()) == 1


def test_running_job_is_given_back_when_an_operator_stops_its_worker(workers: Workers, gate: Gate):
    runner = workers.start("--shutdown-timeout=0.5")
    job = hold.delay(str(gate))
    gate.wait_for(job)

    began = time.monotonic()
    worker_control.stop([row.pk for row in runner.rows()])
    wait_for_state(job, State.READY)

    assert_within(ACTS_WITHIN + 0.5, time.monotonic() - began)
    assert runner.end() == 0
    assert job.refresh().attempt == 0


def test_job_is_given_back_when_its_worker_is_stopped_and_hears_nothing(
    workers: Workers, gate: Gate
):
    runner = workers.start("--shutdown-timeout=0.5")
    gate.open()
    job = block_alone.delay(str(gate))
    gate.wait_for(job)

    worker_control.stop([row.pk for row in runner.rows()])

    assert runner.end() == 0
    assert (job.refresh().state, job.attempt) == (State.READY, 0)


def test_running_job_goes_on_when_an_operator_drains_its_worker(workers: Workers, gate: Gate):
    runner = workers.start("--shutdown-timeout=0.5")
    job = hold.delay(str(gate))
    gate.wait_for(job)

    worker_control.drain([row.pk for row in runner.rows()])
    time.sleep(3)
    waiting = noop.delay()
    assert (job.refresh().state, waiting.refresh().state) == (State.RUNNING, State.READY)
    gate.open()

    wait_for_state(job, State.SUCCESS)
    assert runner.end() == 0


def test_row_tells_load_and_memory_when_a_worker_has_beaten(workers: Workers, gate: Gate):
    runner = workers.start()
    job = hold.delay(str(gate))
    gate.wait_for(job)

    wait_until(lambda: runner.rows()[0].jobs_running == 1, what="the row tells of the job")

    row = runner.rows()[0]
    assert 10e6 < row.rss_bytes < 500e6
    gate.open()


def test_row_tells_the_last_error_when_the_connection_broke(workers: Workers):
    runner = workers.start()
    row = runner.rows()[0]

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = %s",
            [f"tenantqueue {row.name}"],
        )

    wait_until(lambda: runner.rows()[0].last_error, what="the row tells of the error")
    assert runner.rows()[0].last_error_at is not None


def test_heartbeat_file_says_ready_and_then_not(workers: Workers, gate: Gate, tmp_path):
    path = tmp_path / "heartbeat"
    runner = workers.start(f"--heartbeat-file={path}")
    wait_until(lambda: path.exists() and json.loads(path.read_text())["ready"])
    first = json.loads(path.read_text())
    job = hold.delay(str(gate))
    gate.wait_for(job)

    runner.send(signal.SIGTERM)

    wait_until(lambda: not json.loads(path.read_text())["ready"])
    second = json.loads(path.read_text())
    assert second["reason"] == "it is stopping"
    assert second["at"] > first["at"]
    assert second["pid"] == runner.process.pid
    gate.open()
    runner.end()
    assert not path.exists()


def test_stopping_worker_says_what_it_waits_for(workers: Workers, gate: Gate):
    runner = workers.start()
    job = hold.delay(str(gate))
    gate.wait_for(job)

    runner.send(signal.SIGINT)

    wait_until(lambda: f"1 job: {job.pk} (" in runner.output, what="the job is named")
    gate.open()
    assert runner.end() == 0


def test_duties_move_to_another_when_the_one_who_does_them_is_killed(workers: Workers):
    first = workers.start()
    wait_until(lambda: Duty.objects.filter(worker="runner0").exists())
    workers.start()

    began = time.monotonic()
    first.send_all(signal.SIGKILL)
    wait_until(lambda: Duty.objects.filter(worker="runner1", name="promote").exists())

    assert_within(5.0, time.monotonic() - began)
    wait_until(lambda: not Worker.objects.filter(name__startswith="runner0").exists())
