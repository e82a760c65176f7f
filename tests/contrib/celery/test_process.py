"""Celery executes jobs: a real broker, a real dispatcher, real Celery workers."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from django_tenantqueue import Placeholder, delayed
from django_tenantqueue.models import Job, Worker
from django_tenantqueue.states import State
from tests.process.workers import (
    Workers,
    clock,
    make_queue,
    wait_for_end,
    wait_for_state,
    wait_until,
)
from tests.testapp.models import Effect
from tests.testapp.tasks import add
from tests.timing import assert_within

pytest.importorskip("celery")

from tests.celeryapp import chaos
from tests.celeryapp import settings as celery_settings
from tests.celeryapp.brokers import Broker, RabbitMQ, Redis
from tests.celeryapp.deployment import SETTINGS, CeleryWorker, environment
from tests.celeryapp.tasks import (
    breaks,
    busy,
    coroutine,
    hang_once,
    leave_setting,
    plus,
    third_time,
    too_long,
    where,
)


class Deployment:
    """A broker, a dispatcher and Celery workers on the test's database."""

    def __init__(self, broker: Broker, workers: Workers, directory: Path) -> None:
        self.broker = broker
        self.workers = workers
        self.env = environment(workers.database_url, broker.url)
        self.directory = directory
        self.celery: list[CeleryWorker] = []

    def dispatch(self, *options: str) -> Any:
        return self.workers.start("--dispatch=celery", *options, module=SETTINGS, anew=True)

    def work(self, *options: str) -> CeleryWorker:
        number = len(self.celery)
        log = self.directory / f"celery{number}.log"
        made = CeleryWorker(self.env, log, "-n", f"w{number}@test", *options)
        self.celery.append(made)
        return made

    def destroy(self) -> None:
        """Kill all, and print what was said."""
        for worker in self.celery:
            worker.kill()
            sys.stdout.write(f"--- {worker.log.name}\n{worker.output[-20000:]}\n")


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    made = Redis(tmp_path_factory.mktemp("redis"))
    made.start()
    yield made
    made.destroy()


@pytest.fixture
def deployment(
    redis: Redis, workers: Workers, tmp_path: Path, settings: Any, monkeypatch: Any
) -> Iterator[Deployment]:
    """Yield what runs jobs by Celery."""
    settings.TENANTQUEUE = celery_settings.TENANTQUEUE
    monkeypatch.setenv("TEST_BROKER", redis.url)
    redis.flush()
    made = Deployment(redis, workers, tmp_path)
    yield made
    made.destroy()


def test_jobs_run_in_celery_workers(deployment: Deployment):
    deployment.dispatch()
    deployment.work("--pool=prefork", "--concurrency=1")
    jobs = [where.using(tenant="acme", queue="celery").delay(), coroutine.delay(7)]
    jobs += [delayed(third_time, queue="celery")(), delayed(too_long, queue="celery")()]
    following = add.using(queue="celery").call(Placeholder("result"), 1)
    first = add.using(tenant="acme", queue="celery", on_success=following).delay(2, 3)
    wait_for_end([job.pk for job in [*jobs, first]])
    wait_until(lambda: Job.objects.filter(task=add.name, final=True).count() == 2)
    assert sorted(Job.objects.filter(task=add.name).values_list("result_data", flat=True)) == [5, 6]
    done = [job.refresh() for job in jobs]
    assert [job.state for job in done] == [State.SUCCESS] * 4, [job.errors for job in done]
    row = Worker.objects.get(role="runner")
    assert done[0].result == {"pid": row.pid, "tenant": "acme", "queue": "celery", "attempt": 1}
    assert row.name == f"w0@test {row.pid}"
    assert row.executor == "celery"
    assert done[1].result == 7
    assert done[2].result[0] == 2
    assert done[3].result == "stopped"


def test_signals_name_the_task_and_its_outcome(deployment: Deployment):
    deployment.dispatch()
    deployment.work("--pool=prefork", "--concurrency=1")
    jobs = [delayed(plus, queue="celery")(1), delayed(breaks, queue="celery")()]
    wait_for_end([job.pk for job in jobs])
    said = [list(Effect.objects.filter(job_id=job.pk).order_by("pk")) for job in jobs]
    assert [[one.note for one in notes] for notes in said] == [
        [f"{plus.name} begins", f"{plus.name} SUCCESS"],
        [f"{breaks.name} begins", f"{breaks.name} FAILURE"],
    ]


def test_session_is_reset_between_coroutines(deployment: Deployment):
    deployment.dispatch()
    deployment.work("--pool=prefork", "--concurrency=1")
    jobs = [leave_setting.delay(value) for value in ("first", "second")]
    assert [job.result for job in wait_for_end([job.pk for job in jobs])] == ["", ""]


@pytest.mark.parametrize("killed", ["pool process", "whole worker"])
def test_job_of_a_killed_process_runs_again_soon(deployment: Deployment, killed: str):
    deployment.dispatch()
    for _ in range(2):
        deployment.work("--pool=prefork", "--concurrency=1")
    job = wait_for_state(hang_once.delay(), State.RUNNING)
    row = Worker.objects.get(pk=job.worker_id)
    killed_at = clock()
    if killed == "pool process":
        os.kill(row.pid, signal.SIGKILL)
    else:
        deployment.celery[int(row.name[1])].kill()  # w0@test or w1@test
    (job,) = wait_for_end([job.pk])
    assert (job.state, job.attempt) == (State.SUCCESS, 2)
    assert job.result != row.pid
    assert_within(15, job.started_at - killed_at)


def test_limits_are_those_of_the_job(deployment: Deployment):
    deployment.env["TEST_TIME_LIMIT"] = "1"  # of the project, for its own tasks
    deployment.dispatch()
    deployment.work("--pool=prefork", "--concurrency=2")
    long = busy.delay("long", 3000)
    endless = hang_once.using(hard_timeout=2, max_attempts=1).delay()
    done, killed = wait_for_end([long.pk, endless.pk])
    assert (done.state, done.attempt) == (State.SUCCESS, 1), done.errors
    assert killed.state == State.ERROR
    assert killed.last_error["class"] == "django_tenantqueue.exceptions.HardTimeLimitExceeded"
    assert killed.last_error["message"].startswith("it ran for 2.0 s, its hard time limit")


def run_chaos(deployment: Deployment, jobs: int, *, timeout: float, steps: int) -> None:
    for tenant in chaos.TENANTS:
        make_queue(tenant, "celery", num_slots=chaos.SLOTS, executor="celery")
    ids, atomic = chaos.enqueue(jobs)
    story = chaos.play(deployment, ids, workers=3, timeout=timeout, steps=steps)
    sys.stdout.write(
        f"{len(ids)} jobs: {story}; the most of a tenant at once: {chaos.most_beside(ids)};\n"
        f"longest time from a killed run to the next one: {chaos.longest_rescue():.1f} s\n"
    )
    wrong = {name: found for name, found in chaos.audit(ids, atomic).items() if found}
    assert not wrong, wrong


FULL_SIZE = "TENANTQUEUE_FULL_SIZE" in os.environ


@pytest.mark.heavy
@pytest.mark.parametrize("kind", [Redis, RabbitMQ])
def test_nothing_is_lost_in_chaos(
    kind: type[Broker], workers: Workers, tmp_path: Path, settings: Any, monkeypatch: Any
):
    broker = kind(tmp_path / "broker")
    broker.start()
    settings.TENANTQUEUE = celery_settings.TENANTQUEUE
    monkeypatch.setenv("TEST_BROKER", broker.url)
    made = Deployment(broker, workers, tmp_path)
    try:
        if FULL_SIZE:
            run_chaos(made, 5000, timeout=1200, steps=4)
        else:
            run_chaos(made, 100, timeout=180, steps=2)
    finally:
        made.destroy()
        broker.destroy()
