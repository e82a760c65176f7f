"""A worker that ends on an operator's wish stays away, and hands its duties on."""

import signal
from datetime import timedelta

import pytest

from django_tenantqueue.models import Worker
from django_tenantqueue.operations.worker_control import drain
from django_tenantqueue.states import State
from tests.testapp.tasks import noop

from .tasks import hold
from .workers import Gate, Workers, wait_for_state, wait_until


@pytest.mark.heavy
def test_drained_process_ends_its_jobs_and_is_not_replaced(workers: Workers, gate: Gate):
    runner = workers.start()
    job = hold.delay(str(gate))
    gate.wait_for(job)

    drain([row.pk for row in runner.rows()])
    wait_until(lambda: Worker.objects.filter(draining=True).exists())
    gate.open()

    assert runner.end() == 0
    assert job.refresh().state == State.SUCCESS
    assert not Worker.objects.exists()


@pytest.mark.heavy
def test_maintenance_goes_on_elsewhere_while_a_worker_is_stopping(workers: Workers, gate: Gate):
    first = workers.start()
    job = hold.delay(str(gate))
    gate.wait_for(job)
    workers.start()

    first.send(signal.SIGTERM)  # it stays, for its job holds
    due = noop.using(run_at=timedelta(seconds=0.3)).delay()

    wait_for_state(due, State.SUCCESS, timeout=10)
    assert first.process.poll() is None
    gate.open()
    assert first.end() == 0
