"""What a worker does with jobs whose tasks it lacks, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from django_tenantqueue import Serial, control
from django_tenantqueue.calls.sources import has_task, known_names, lacks_task, registered_tasks
from django_tenantqueue.exceptions import UnknownTask
from django_tenantqueue.execution.outcome import UNKNOWN_CLASS
from django_tenantqueue.models import Job, Session, Worker
from django_tenantqueue.queries.workers import share_unknown_tasks
from django_tenantqueue.worker.child.unknown_tasks import UnknownTasks
from django_tenantqueue.worker.connection import WorkerConnection, connect
from tests.factories import make_job, make_queue, register_worker
from tests.testapp.tasks import noop

from .loops import FakeLoop, turned_loop

pytestmark = pytest.mark.django_db(transaction=True)
SILENT = 30.0


@pytest.fixture
def make_loop() -> Iterator[Callable[[], FakeLoop]]:
    with ExitStack() as made:
        yield lambda: made.enter_context(turned_loop())


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


@pytest.mark.parametrize("role", ["runner", "dispatcher"])
def test_process_of_an_executor_leaves_no_job_to_workers(connection, role):
    one = register_worker(connection, role=role)
    register_worker(connection)

    assert share(connection, one, "a") == {"a": False}


@pytest.mark.parametrize(
    ("mine", "others", "may_have"),
    [
        ({"queues": ("a",)}, {}, True),
        ({"queues": ("a",)}, {"queues": ("a", "b")}, True),
        ({"queues": ("a",)}, {"queues": ("b",)}, False),
        ({}, {"queues": ("a",)}, False),
        ({}, {"exclude_queues": ("a",)}, False),
        ({"exclude_queues": ("a", "b")}, {"exclude_queues": ("a",)}, True),
        ({"queues": ("a",)}, {"exclude_queues": ("b",)}, True),
        ({"queues": ("a",)}, {"exclude_queues": ("a",)}, False),
        ({"tenants": ("x",)}, {}, True),
        ({}, {"tenants": ("x",)}, False),
        ({"tenants": ("x",)}, {"tenants": ("y",)}, False),
        ({}, {"threads": 0}, False),
        ({"async_slots": 0}, {"async_slots": 0}, True),
        ({}, {"async_slots": 0}, False),
    ],
)
def test_jobs_are_left_only_to_workers_that_take_them(connection, mine, others, may_have):
    one = register_worker(connection, **mine)
    register_worker(connection, **others)

    assert share(connection, one, "a") == {"a": may_have}


def test_worker_forgets_tasks_that_no_job_has_had_for_long(connection, monkeypatch):
    one, other = register_worker(connection), register_worker(connection)
    share(connection, other, "tests.gone")
    unknown_tasks = UnknownTasks(one)
    unknown_tasks.start(connection)
    assert Worker.objects.get(pk=one).unknown_tasks == ["tests.gone"]

    later = time.monotonic() + 3601.0
    monkeypatch.setattr(time, "monotonic", lambda: later)
    unknown_tasks.share(connection)

    assert Worker.objects.get(pk=one).unknown_tasks is None


def test_task_whose_module_is_broken_is_not_left_to_others(monkeypatch):
    def broken(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr("django_tenantqueue.calls.sources._finders", [broken])

    assert has_task("tests.broken")
    assert not lacks_task("task", "tests.broken")


def test_job_that_does_not_fit_is_left_to_others_for_a_while(make_loop):
    loop = make_loop()
    job = Job.objects.get(pk=make_job(make_queue()).pk)
    [running] = loop.take(1)
    running._claimed = running._claimed._replace(source_type="class")
    loop.give_back(running, UnknownTask("they do not fit"))
    loop.turn_until(lambda: job.refresh().state == "scheduled")
    Job.objects.filter(pk=job.pk).update(state="ready", run_at=Now())

    heartbeat = loop.claim_loop.heartbeat
    more = heartbeat._claims + 3
    loop.turn_until(lambda: heartbeat._claims >= more)
    assert loop.executor.jobs == []
    assert job.refresh().state == "ready"

    other = make_loop()
    [running] = other.take(1)
    assert running.id == job.pk


def test_job_that_no_worker_can_run_halts_its_session(make_loop, settings):
    settings.TENANTQUEUE = {**settings.TENANTQUEUE, "UNKNOWN_TASK_TIMEOUT": 60}
    old = [{"at": "2026-01-01T00:00:00+00:00", "class": UNKNOWN_CLASS, "attempt": 1}]
    job = noop.using(session=Serial("s", on_failure="halt")).delay()
    Job.objects.update(errors=old)
    loop = make_loop()
    [running] = loop.take(1)

    loop.give_back(running, UnknownTask("gone"))
    loop.turn_until(lambda: job.refresh().final)

    assert job.state == "error"
    assert job.last_error["message"] == "no worker could run it for 60 s: gone"
    assert job.last_error["attempt"] == 0
    assert Session.objects.get(key="s").halted_at is not None

    # a retry counts from its own first error
    control.retry(job)
    control.resume(session="s")
    loop = make_loop()
    [running] = loop.take(1)
    loop.give_back(running, UnknownTask("gone"))
    loop.turn_until(lambda: job.refresh().state == "scheduled")
    assert job.last_error["message"] == "gone"


def test_starting_worker_takes_over_what_it_lacks_of_what_others_lack(connection, make_loop):
    older = register_worker(connection)
    of_the_package = known_names() - registered_tasks().keys()
    assert of_the_package
    share(connection, older, "tests.gone", noop.name, *of_the_package)

    loop = make_loop()
    loop.claim_loop.run_once()

    assert Worker.objects.get(pk=loop.id).unknown_tasks == ["tests.gone"]


def test_starting_worker_hurries_jobs_of_its_tasks(make_loop):
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

    loop = make_loop()
    loop.claim_loop.run_once()

    due = Job.objects.filter(run_at__lte=Now())
    assert list(due.values_list("pk", flat=True)) == [jobs["hurried"].pk]
