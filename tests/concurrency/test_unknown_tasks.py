"""What a worker does with jobs whose tasks it lacks, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from django_tenantqueue.execution.outcome import UNKNOWN_CLASS
from django_tenantqueue.models import Job, Worker
from django_tenantqueue.queries.workers import share_unknown_tasks
from django_tenantqueue.worker.connection import WorkerConnection, connect
from tests.factories import make_job, make_queue, register_worker
from tests.testapp.tasks import noop

from .loops import FakeLoop

pytestmark = pytest.mark.django_db(transaction=True)
SILENT = 30.0


@pytest.fixture
def connection() -> Iterator[WorkerConnection]:
    with connect("default", "test") as made:
        yield made


def share(connection: WorkerConnection, worker: int, *names: str) -> dict[str, bool]:
    return share_unknown_tasks(connection, worker, names, silent_seconds=SILENT)


def test_task_may_be_elsewhere_until_every_other_worker_lacks_it(connection):
    one, other = register_worker(connection), register_worker(connection)

    assert share(connection, one, "a") == {"a": True}
    assert share(connection, other) == {"a": False}
    assert share(connection, other, "a", "b") == {"a": False, "b": True}
    assert share(connection, one, "a") == {"a": False, "b": False}


@pytest.mark.parametrize(
    "change",
    [
        {"draining": True},
        {"stopping": True},
        {"role": "dispatcher"},
        {"heartbeat_at": Now() - timedelta(seconds=SILENT + 1)},
    ],
    ids=str,
)
def test_worker_that_runs_no_more_jobs_has_no_tasks(connection, change):
    one, other = register_worker(connection), register_worker(connection)
    Worker.objects.filter(pk=other).update(**change)

    assert share(connection, one, "a") == {"a": False}


def test_worker_forgets_tasks_that_it_lacks_no_more(connection):
    one = register_worker(connection)
    share(connection, one, "a")
    share(connection, one)

    assert Worker.objects.get(pk=one).unknown_tasks is None


def test_starting_worker_hurries_jobs_of_its_tasks(connection):
    queue = make_queue()
    error = [{"at": "2026-01-01T00:00:00+00:00", "class": UNKNOWN_CLASS, "message": "gone"}]
    other = [{**error[0], "class": "ValueError"}]
    soon, later = Now() + timedelta(seconds=10), Now() + timedelta(seconds=100)
    jobs = {
        "hurried": make_job(queue, state="scheduled", task=noop.name, errors=error),
        "another error": make_job(queue, state="scheduled", task=noop.name, errors=other),
        "another task": make_job(queue, state="scheduled", task="tests.gone", errors=error),
        "later": make_job(queue, state="scheduled", task=noop.name, errors=error),
    }
    for name, job in jobs.items():
        Job.objects.filter(pk=job.pk).update(run_at=later if name == "later" else soon)

    loop = FakeLoop()

    due = Job.objects.filter(run_at__lte=Now())
    assert list(due.values_list("pk", flat=True)) == [jobs["hurried"].pk]
    loop.claim_loop.close()
