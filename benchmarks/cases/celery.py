"""Jobs that do nothing, run by Celery workers for a dispatcher, beside Celery alone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Self

import psutil
from django.utils import timezone

from django_tenantqueue.models import TenantQueue
from django_tenantqueue.queries.enqueue import wake_any_workers

from ..bench import Bench
from ..bench_app import tasks
from ..measure import ratios
from ..processes import ROOT, Processes, environment
from ..results import Incorrect, Row, Sample, at_least
from ..server import process_cpu

PROCESSES = 2
"""Processes of Celery's pool."""
REUSE = "1000000"
"""Tasks for which a process of Celery keeps its database connection; its default is one."""
SETTINGS = "benchmarks.celery_settings"


class Crew(Processes):
    """A Redis server, a Celery worker and, for jobs of ours, a dispatcher."""

    what = "a program"

    def __init__(self, bench: Bench, queue: str, *options: str, reuse: str = "") -> None:
        super().__init__()
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        broker = f"redis://127.0.0.1:{self.port}/0"
        self.env = environment(
            bench.url,
            DJANGO_SETTINGS_MODULE=SETTINGS,
            BENCHMARK_BROKER=broker,
            BENCHMARK_RESULTS="django-db",
            BENCHMARK_REUSE=reuse,
        )
        self._bench = bench
        os.environ["BENCHMARK_BROKER"] = broker
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self.start(command, self.env, bench.directory / "redis.log")
        self.wait_for(self._answers, "Redis answers")
        self.start(
            [
                *(sys.executable, "-m", "celery", "-A", "benchmarks.bench_app.celery_app"),
                *("worker", "--pool=prefork", f"--concurrency={PROCESSES}", "-Q", queue),
                *("--without-mingle", "--without-gossip", "-l", "WARNING", *options),
            ],
            self.env,
            bench.directory / "celery.log",
        )
        self._paid = self._commands[1:]

    @property
    def worker(self) -> subprocess.Popen[Any]:
        """The Celery worker."""
        return self._commands[1]

    def dispatch(self) -> Self:
        """Start a dispatcher."""
        command = [sys.executable, "-m", "django", "runworker", "--dispatch", "celery"]
        self.start(command, self.env, self._bench.directory / "dispatcher.log")
        self._paid = self._commands[1:]
        return self

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def tell_to_stop(self, command: subprocess.Popen[Any]) -> None:
        """Tell one to end; the broker ends after the others."""
        if command is self._commands[0]:
            for other in self._commands[1:]:
                other.send_signal(signal.SIGTERM)
            for other in self._commands[1:]:
                other.wait(30)
        super().tell_to_stop(command)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the Celery worker and the dispatcher, with their children."""
        used = 0.0
        for command in self._paid:
            process = psutil.Process(command.pid)
            used += sum(map(process_cpu, [process, *process.children(recursive=True)]))
        return used


def run(bench: Bench) -> Iterator[Row]:
    """Measure Celery's pool with jobs of ours and with its own tasks, in the same rounds."""
    if not find_spec("celery") or not find_spec("django_celery_results"):
        return
    if shutil.which("redis-server") is None:
        print("celery: no redis-server: apt-get install redis-server", file=sys.stderr)
        return
    if bench.use("celery"):
        _migrate(bench)
    jobs, few = bench.size(5_000, 500), bench.size(1_000, 100)
    rounds = bench.rounds(
        lambda: (_ours(bench, jobs), _theirs(bench, few), _theirs(bench, jobs, REUSE))
    )
    ours, default, kept = ([one[n] for one in rounds] for n in range(3))
    alone = "Celery alone: acks_late, django-celery-results"
    yield Row("celery", f"{jobs:,} jobs, one dispatcher", "jobs/s", ours)
    yield Row("celery", f"{few:,} tasks, {alone}", "jobs/s", default)
    yield Row("celery", f"{jobs:,} tasks, the same, and connections kept", "jobs/s", kept)
    for than, others, target in (
        ("Celery alone", default, at_least(1)),
        ("Celery alone that keeps its connections", kept, None),
    ):
        shares = ratios([one.value for one in ours], [one.value for one in others])
        samples = [Sample(share) for share in shares]
        yield Row("celery", f"compared with {than}", "×", samples, target=target, digits=2)


def _migrate(bench: Bench) -> None:
    """Make the tables of django-celery-results."""
    env = environment(bench.url, DJANGO_SETTINGS_MODULE=SETTINGS)
    command = [sys.executable, "-m", "django", "migrate", "-v0"]
    subprocess.run(command, env=env, cwd=ROOT, check=True)


def _ours(bench: Bench, jobs: int) -> Sample:
    bench.reset()
    for tenant, paused in (("warm", False), ("wide", True)):
        TenantQueue.objects.create(
            tenant=tenant, name="celery", executor="celery", num_slots=None, paused=paused
        )
    warm = tasks.nap.using(tenant="warm", queue="celery").enqueue_many([(0.3,)] * 2 * PROCESSES)
    tasks.noop_sync.using(tenant="wide", queue="celery").enqueue_many([()] * jobs)
    bench.vacuum()
    with Crew(bench, "tenantqueue", "--prefetch-multiplier=1").dispatch() as crew:
        crew.wait_for(lambda: bench.states().get("success") == len(warm), "the processes are warm")
        bench.settle()
        time.sleep(0.5)
        meter, begun = bench.meter(crew), timezone.now()
        TenantQueue.objects.filter(tenant="wide").update(paused=False)
        wake_any_workers("default", most=1000)
        bench.wait_until_done(crew)  # type: ignore[arg-type]
        cost = meter.read()
    bench.check_finished(jobs + len(warm))
    ended = bench.value("SELECT max(finished_at) FROM tenantqueue_job_history")
    return Sample(jobs / (ended - begun).total_seconds(), jobs, cost)


def _theirs(bench: Bench, jobs: int, reuse: str = "") -> Sample:
    bench.db.execute("TRUNCATE django_celery_results_taskresult")
    bench.server.checkpoint()
    count = "SELECT count(*) FROM django_celery_results_taskresult WHERE status = 'SUCCESS'"
    with Crew(bench, "celery", reuse=reuse) as crew:
        from ..bench_app.celery_app import app, noop, warm_up

        app.conf.broker_url = app.conf.broker_write_url = os.environ["BENCHMARK_BROKER"]
        with (
            app.connection_for_write(os.environ["BENCHMARK_BROKER"]) as connection,
            app.amqp.Producer(connection) as producer,
        ):
            warm = 2 * PROCESSES
            for _ in range(warm):
                warm_up.apply_async(producer=producer)
            crew.wait_for(lambda: bench.value(count) == warm, "the processes are warm")
            crew.worker.send_signal(signal.SIGSTOP)
            for _ in range(jobs):
                noop.apply_async(producer=producer)
        bench.db.execute("VACUUM (ANALYZE) django_celery_results_taskresult")
        bench.settle()
        time.sleep(0.5)
        meter, begun = bench.meter(crew), timezone.now()
        crew.worker.send_signal(signal.SIGCONT)
        crew.wait_for(lambda: bench.value(count) == jobs + warm, "Celery has run all", 600.0)
        cost = meter.read()
    ended = bench.value("SELECT max(date_done) FROM django_celery_results_taskresult")
    if bench.value(count) != jobs + warm:
        raise Incorrect("Celery has lost a task")
    return Sample(jobs / (ended - begun).total_seconds(), jobs, cost)
