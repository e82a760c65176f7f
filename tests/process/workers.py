"""Start `manage.py runworker`, watch it, and make sure that nothing of it outlives the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import psutil
from django.db import connection

from django_tenantqueue.models import Job, TenantQueue, Worker
from django_tenantqueue.states import State
from django_tenantqueue.worker.child.sleep import IDLE_SECONDS, SETTLE_SECONDS
from tests.timing import TooLate
from tests.zygote import ROOT, Zygote

from .tasks import HOLDS_FROM

SETTINGS = "tests.process.settings"
LOOK_SECONDS = 0.01
PATIENCE = 20.0


def wait_until(condition: Callable[[], object], timeout: float = PATIENCE, what: str = "") -> None:
    """Wait until the condition holds; fail the test when it does not within `timeout` seconds.

    A timeout below PATIENCE is a bound that is tested, so it fails with TooLate.
    """
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            failure = TooLate if timeout < PATIENCE else AssertionError
            raise failure(f"not within {timeout} s: {what or condition.__name__}")
        time.sleep(LOOK_SECONDS)


class Runner:
    """One `runworker` command: a supervisor and its children, in a process group of their own."""

    def __init__(
        self,
        name: str,
        options: list[str],
        env: Mapping[str, str],
        log: Path,
        zygote: Zygote | None,
    ) -> None:
        self.name = name
        self.log = log
        command = ["runworker", f"--name={name}", *options]
        self.process = (
            start_anew(command, env, log)
            if zygote is None
            else zygote.start("django", command, env, log)
        )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def rows(self) -> list[Worker]:
        return list(Worker.objects.filter(name__startswith=f"{self.name}.").order_by("id"))

    def children(self) -> list[psutil.Process]:
        """Return the children that are alive, as long as their supervisor is."""
        alive = []
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children():
                with suppress(psutil.NoSuchProcess):
                    if child.status() != psutil.STATUS_ZOMBIE:
                        alive.append(child)
        return alive

    def wait_until_signed_on(self, processes: int) -> None:
        """Wait until so many children are alive and have written their process ids."""

        def signed_on() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} has ended:\n{self.output}")
            alive = {child.pid for child in self.children()}
            return len(alive) == processes and alive <= {row.pid for row in self.rows()}

        wait_until(signed_on, what=f"{processes} children of {self.name} have signed on")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def send_all(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor and the children, as a terminal and systemd do."""
        os.killpg(self.process.pid, number)

    def end(self, timeout: float = 20.0) -> int:
        """Wait for the end of the command; return its exit code."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TooLate(f"{self.name} has not ended within {timeout} s") from None

    def destroy(self) -> None:
        """Kill what is left of the group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def start_anew(command: list[str], env: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Run `python -m django <command>` in a session of its own; its output goes to `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "django", *command],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class Workers:
    """Makes the runners of one test; they are forks of the zygote unless told otherwise."""

    def __init__(self, database_url: str, directory: Path, zygote: Zygote) -> None:
        self.database_url = database_url
        self.directory = directory
        self.zygote = zygote
        self.runners: list[Runner] = []

    def launch(
        self,
        *options: str,
        settings: Mapping[str, object] | None = None,
        module: str = SETTINGS,
        database_url: str | None = None,
        anew: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> Runner:
        """Start a worker; `settings` override entries of TENANTQUEUE. `anew`: not by a fork."""
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": module,
            "DATABASE_URL": database_url or self.database_url,
            "TEST_TENANTQUEUE": json.dumps(dict(settings or {})),
            "PYTHONUNBUFFERED": "1",
            **(variables or {}),
        }
        name = f"runner{len(self.runners)}"
        zygote = None if anew else self.zygote
        runner = Runner(name, list(options), env, self.directory / f"{name}.log", zygote)
        self.runners.append(runner)
        return runner

    def start(self, *options: str, processes: int = 1, **launch: object) -> Runner:
        """Start a worker and wait until all its children have signed on."""
        runner = self.launch(f"--processes={processes}", *options, **launch)
        runner.wait_until_signed_on(processes)
        return runner

    def run(self, *options: str, timeout: float = 30.0, **launch: object) -> Runner:
        runner = self.launch(*options, **launch)
        runner.end(timeout)
        return runner

    def destroy(self) -> None:
        """Kill all of them and print what they said, for the report of a failed test."""
        for runner in self.runners:
            runner.destroy()
            sys.stdout.write(f"--- {runner.name}\n{runner.output}\n")


class Gate:
    """A file that holding tasks wait for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> None:
        self.path.touch()

    def started(self, job: Job, attempt: int = 1) -> bool:
        return Path(f"{self.path}.{job.pk}.{attempt}").exists()

    def wait_for(self, *jobs: Job, attempt: int = 1) -> None:
        wait_until(
            lambda: all(self.started(job, attempt) for job in jobs),
            what=f"attempt {attempt} of {[job.pk for job in jobs]} has started",
        )


def make_queue(tenant: str, name: str = "default", **columns: object) -> TenantQueue:
    return TenantQueue.objects.create(tenant=tenant, name=name, **columns)


def clock() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def wait_for_end(ids: Iterable[int], timeout: float = 30.0) -> list[Job]:
    """Wait until the jobs are finished; return them in the order of their claims."""
    wanted = list(ids)
    finished = Job.objects.filter(pk__in=wanted, final=True)
    wait_until(lambda: finished.count() == len(wanted), timeout, "all jobs are finished")
    return list(finished.select_related("queue").order_by("queued_at", "id"))


def wait_for_state(job: Job, state: str, timeout: float = 20.0) -> Job:
    wait_until(lambda: job.refresh().state == state, timeout, f"job {job.pk} is {state}")
    return job


def wait_until_two_hold(ids: Iterable[int]) -> None:
    """Wait until two jobs of work_or_hold are at the gate, and all that come before have ended.

    One of these may be shown as running, too, when the machine has stalled under it.
    """
    jobs = Job.objects.filter(pk__in=list(ids))
    ended, running = jobs.filter(final=True), jobs.filter(final=False, state=State.RUNNING)
    wait_until(
        lambda: ended.count() == HOLDS_FROM and running.count() == 2, what="two jobs are held"
    )


def wait_until_asleep(*runners: Runner) -> None:
    """Wait until all children have announced their sleep, and looked for the last time."""
    announced_for = timedelta(seconds=IDLE_SECONDS)

    def asleep(runner: Runner) -> bool:
        begun = clock() - timedelta(seconds=SETTLE_SECONDS + 0.3) + announced_for
        return all(row.sleeping_until and row.sleeping_until < begun for row in runner.rows())

    for runner in runners:
        wait_until(lambda runner=runner: asleep(runner), what=f"{runner.name} is asleep")
