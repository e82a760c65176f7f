"""The network between a worker and the server is cut: no job runs twice at once, and it is logged.

Bodies of jobs write their own intervals into files. With TENANTQUEUE_FULL_SIZE=1 there are 200 cuts
at random moments.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import cycle, pairwise
from math import inf
from pathlib import Path
from random import Random
from statistics import median

import psutil
import pytest
from django.db import connection

from django_tenantqueue.models import Duty, Job
from django_tenantqueue.operations.rescue import LOOK_SECONDS, SETTLE_SECONDS
from django_tenantqueue.queries.locks import LockKey
from django_tenantqueue.states import State
from tests.intervals import breaches
from tests.testapp.tasks import noop

from .proxy import How, New, Proxy
from .tasks import TICKED, hold, tick
from .workers import Gate, Runner, Workers, make_queue, wait_for_end, wait_until

FULL = bool(os.environ.get("TENANTQUEUE_FULL_SIZE"))
CUTS = 200
AT_ONCE = 10
LOGGED_SECONDS = 10.0
RUN_SECONDS = 7.0
"""Longer than it takes until others run the job."""

PHASES = ("idle", "claiming", "running", "finishing")
WHICH = ("supervisor", "child", "all")


@dataclass
class Cut:
    """One worker behind a proxy of its own, and how it is cut."""

    number: int
    phase: str
    which: str
    how: How
    new: New
    proxy: Proxy = field(repr=False)
    runner: Runner = field(repr=False)
    at: float = 0.0
    printed: int = 0
    logged_after: float | None = None

    @property
    def queue(self) -> str:
        return f"cut{self.number}"

    @property
    def is_logged(self) -> bool:
        return self.logged_after is not None and self.logged_after < LOGGED_SECONDS

    def do(self) -> None:
        self.at, self.printed = time.monotonic(), len(self.runner.output)
        self.proxy.cut(self.how, self.new, self._name)

    def prepare(self) -> None:
        """Cut when what belongs to the phase passes."""
        self.printed = len(self.runner.output)
        text = {"claiming": tick.name, "finishing": TICKED}[self.phase].encode()
        self.proxy.cut_at(text, self.how, self.new, self._name)

    @property
    def _name(self) -> str:
        name = self.runner.name
        return {"supervisor": f"{name} supervisor", "child": f"{name}.", "all": ""}[self.which]

    def look(self) -> None:
        """Look whether the trap has sprung, and whether the worker has logged anything."""
        if not self.at:
            self.at = self.proxy.sprung_at
        if self.at and self.logged_after is None and len(self.runner.output) > self.printed:
            self.logged_after = time.monotonic() - self.at


@pytest.fixture
def leader(workers: Workers) -> Runner:
    """Return a worker that rescues, takes no jobs, and is not cut."""
    with connection.cursor() as cursor:
        query = "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())"
        wait_until(lambda: cursor.execute(query) or cursor.fetchone()[0] > SETTLE_SECONDS)
    made = workers.start("--queues=none")
    wait_until(lambda: Duty.objects.filter(name="rescue", worker=made.name).exists())
    return made


def runs_of(directory: Path, job_id: int) -> list[tuple[float, float]]:
    """Return the intervals of a job's runs, by what they wrote."""
    found: dict[str, tuple[float, float]] = {}
    path = directory / str(job_id)
    for line in path.read_text().splitlines() if path.exists() else ():
        run, _, written = line.partition(" ")
        with suppress(ValueError):  # a line was cut off when its process was killed
            at = float(written)
            found[run] = (found.get(run, (at, at))[0], at)
    return list(found.values())


def run_cuts(workers: Workers, cuts: list[Cut], directory: Path, random: Random) -> list[int]:
    """Cut all these workers, have others run their jobs, and return the ids of all jobs."""
    ids: list[int] = []
    moments: list[tuple[float, Cut]] = []
    for cut in cuts:
        ticks = tick.using(queue=cut.queue, max_attempts=30)
        if cut.phase in ("claiming", "finishing"):
            cut.prepare()
        if cut.phase in ("running", "random", "claiming"):
            ids.append(ticks.delay(str(directory), RUN_SECONDS).pk)
        if cut.phase == "random":
            runs = [(str(directory), random.uniform(0.0, 0.3)) for _ in range(12)]
            ids += ticks.enqueue_many(runs)
        if cut.phase == "finishing":
            ids.append(ticks.delay(str(directory), 0.2).pk)
        if cut.phase == "running":
            wait_until(lambda path=directory / str(ids[-1]): path.exists())
        if cut.phase in ("idle", "running", "random"):
            after = random.uniform(0.0, 2.0) if cut.phase == "random" else 0.0
            moments.append((time.monotonic() + after, cut))
    for at, cut in sorted(moments, key=lambda pair: pair[0]):
        time.sleep(max(0.0, at - time.monotonic()))
        cut.do()
        if cut.phase == "idle":
            ticks = tick.using(queue=cut.queue, max_attempts=30)
            ids.append(ticks.delay(str(directory), 1.0).pk)

    taker = workers.launch("--no-maintenance", "--threads=40", f"--name=taker{cuts[0].number}")

    # each cut lasts until others would have run its jobs, even if all is logged at once
    end = time.monotonic() + LOGGED_SECONDS
    wait_until(lambda: [cut.look() for cut in cuts] and time.monotonic() > end)
    for cut in cuts:
        cut.proxy.resume()
    wait_for_end(ids, timeout=90.0)
    taker.send(signal.SIGTERM)
    taker.end(60.0)
    return ids


def judge(cuts: list[Cut], ids: list[int], directory: Path) -> list[str]:
    wrong = [
        f"job {job_id} ran twice at once: {found}"
        for job_id in ids
        if (found := breaches(runs_of(directory, job_id), 1))
    ]
    wrong += [f"not logged within 10 s: {cut}" for cut in cuts if not cut.is_logged]
    ended = Job.objects.filter(pk__in=ids)
    wrong += [f"{job} ended in {job.state}" for job in ended if job.state != State.SUCCESS]
    return wrong


def plan_each(random: Random) -> list[tuple[str, str, How, New]]:
    """Return each phase with each kind of connection, in all the ways of cutting, by turns."""
    hows, news = cycle(How), cycle((New.HOLD, New.PASS, New.CLOSE))
    return [(phase, which, next(hows), next(news)) for which in WHICH for phase in PHASES]


def plan_random(random: Random) -> list[tuple[str, str, How, New]]:
    return [
        (
            random.choice(("random", "random", *PHASES)),
            random.choice(list(WHICH)),
            random.choice(list(How)),
            random.choice(list(New)),
        )
        for _ in range(CUTS)
    ]


@pytest.mark.heavy
@pytest.mark.parametrize("plan", [plan_each, *([plan_random] if FULL else [])])
def test_no_job_runs_twice_at_once_when_the_network_is_cut(
    workers: Workers,
    leader: Runner,
    proxies: Callable[[], Proxy],
    tmp_path: Path,
    plan: Callable[[Random], list[tuple[str, str, How, New]]],
):
    random = Random(int(os.environ.get("TENANTQUEUE_SEED", "1")))
    planned = plan(random)
    directory = tmp_path / "runs"
    directory.mkdir()
    done: list[Cut] = []
    ids: list[int] = []
    wrong: list[str] = []
    for first in range(0, len(planned), AT_ONCE):
        cuts = []
        for number, (phase, which, how, new) in enumerate(planned[first : first + AT_ONCE], first):
            proxy = proxies()
            maintenance = ["--no-maintenance"] if number % 2 else []
            runner = workers.launch(
                "--processes=1",
                "--threads=4",
                f"--queues=cut{number}",
                *maintenance,
                database_url=proxy.url,
            )
            make_queue("", f"cut{number}", num_slots=100)
            cuts.append(Cut(number, phase, which, how, new, proxy, runner))
        for cut in cuts:
            cut.runner.wait_until_signed_on(1)
        ids_of_round = run_cuts(workers, cuts, directory, random)
        wrong += judge(cuts, ids_of_round, directory)
        for cut in cuts:
            cut.runner.destroy()
        done += cuts
        ids += ids_of_round
        sys.stdout.write(figures(done, ids, directory))  # pytest -s shows it

    assert not wrong, "\n".join(wrong)


def figures(done: list[Cut], ids: list[int], directory: Path) -> str:
    logged = sorted(cut.logged_after or inf for cut in done)
    runs = [sorted(runs_of(directory, job_id)) for job_id in ids]
    apart = [second[0] - first[1] for job in runs for first, second in pairwise(job)]
    return (
        f"{len(done)} cuts, {len(ids)} jobs, {sum(map(len, runs))} runs, "
        f"{sum(bool(breaches(job, 1)) for job in runs)} jobs twice at once; {len(apart)} runs "
        f"after another of the same job, at least {min(apart, default=inf):.2f} s apart; "
        f"logged after {median(logged):.1f} s (median), {logged[-1]:.1f} s at most"
        f"; by kind: {sorted(Counter((cut.which, cut.how.name) for cut in done).items())}\n"
    )


@pytest.mark.parametrize(
    ("how", "new"),
    [
        pytest.param(How.HALF_OPEN, New.HOLD, id="has_lost_the_server"),
        pytest.param(How.CLOSED, New.CLOSE, id="refuses"),
    ],
)
def test_child_is_dead_before_its_job_runs_elsewhere_when_a_proxy(
    workers: Workers, gate: Gate, leader: Runner, proxies: Callable[[], Proxy], how: How, new: New
):
    proxy = proxies()
    cut_off = workers.start("--no-maintenance", database_url=proxy.url)
    job = hold.using(max_attempts=2).delay(str(gate))
    gate.wait_for(job)
    (child,) = cut_off.children()

    proxy.cut(how, new)
    workers.start("--no-maintenance")
    gate.wait_for(job, attempt=2)
    gate.open()

    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert [job.state for job in wait_for_end([job.pk])] == [State.SUCCESS]


def test_jobs_go_on_when_a_proxy_has_lost_the_server_and_new_connections_work(
    workers: Workers, gate: Gate, leader: Runner, proxies: Callable[[], Proxy]
):
    proxy = proxies()
    runner = workers.start(database_url=proxy.url)
    job = hold.using(max_attempts=1).delay(str(gate))
    gate.wait_for(job)

    proxy.cut(How.HALF_OPEN, New.PASS)
    wait_until(lambda: "the supervisor lost its database connection" in runner.output)
    gate.open()
    ended = wait_for_end([job.pk], timeout=60.0)
    later = wait_for_end([noop.delay().pk])

    assert [(job.state, job.attempt) for job in [*ended, *later]] == [(State.SUCCESS, 1)] * 2


def test_each_event_is_logged_once_when_the_network_stays_cut(
    workers: Workers, gate: Gate, proxies: Callable[[], Proxy]
):
    proxy = proxies()
    runner = workers.start(database_url=proxy.url)
    job = hold.using(max_attempts=2).delay(str(gate))
    gate.wait_for(job)

    proxy.cut(How.CLOSED, New.HOLD)
    wait_until(lambda: "before other workers run their jobs" in runner.output)
    attempts = len(proxy.links)
    wait_until(lambda: len(proxy.links) > attempts + 3)
    during = runner.output
    gate.open()
    proxy.resume()
    (ended,) = wait_for_end([job.pk])

    assert "lost the database" in ended.last_error["message"]
    assert during.count("before other workers run their jobs") == 1
    assert during.count("the supervisor lost its database connection") == 1
    assert during.count("ERROR") == 1
    assert runner.output.count("the supervisor reconnected") == 1


def holder_of_the_lead() -> list[int]:
    """Return the server's pid of the session that does the fleet's maintenance."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND granted",
            [LockKey.MAINTENANCE],
        )
        return [pid for (pid,) in cursor.fetchall()]


def test_children_live_and_the_lead_is_taken_again_when_the_supervisor_hears_nothing(
    workers: Workers, gate: Gate, proxies: Callable[[], Proxy]
):
    """The proxy keeps the old session at the server, with all its locks."""
    proxy = proxies()
    runner = workers.start(database_url=proxy.url)
    wait_until(lambda: len(holder_of_the_lead()) == 1)
    held_by = holder_of_the_lead()
    job = hold.using(max_attempts=1).delay(str(gate))
    gate.wait_for(job)

    proxy.cut(How.BLACK_HOLE, New.PASS, " supervisor")
    wait_until(lambda: holder_of_the_lead() not in ([], held_by))
    gate.open()

    assert [job.state for job in wait_for_end([job.pk])] == [State.SUCCESS]
    assert "before other workers run their jobs" not in runner.output


def test_maintenance_goes_on_when_its_own_connection_hears_nothing(
    workers: Workers, proxies: Callable[[], Proxy]
):
    proxy = proxies()
    runner = workers.start(database_url=proxy.url)
    wait_for_end([noop.using(run_at=timedelta(seconds=0.2)).delay().pk])

    proxy.cut(How.BLACK_HOLE, New.PASS, "?")
    job = noop.using(run_at=timedelta(seconds=0.2)).delay()

    wait_for_end([job.pk])
    assert "the database has not answered the maintenance" in runner.output


def test_job_succeeds_once_when_its_supervisor_was_stopped_for_long(
    workers: Workers, gate: Gate, leader: Runner
):
    """Its connection stands: the kernel answers for it."""
    runner = workers.start("--no-maintenance")
    job = hold.using(max_attempts=1).delay(str(gate))
    gate.wait_for(job)

    runner.send(signal.SIGSTOP)
    time.sleep(LOOK_SECONDS + 1)
    runner.send(signal.SIGCONT)
    wait_until(lambda: runner.process.poll() is None and runner.children())
    gate.open()

    assert [(job.state, job.attempt) for job in wait_for_end([job.pk])] == [(State.SUCCESS, 1)]
    assert "before other workers run their jobs" not in runner.output


@pytest.mark.heavy
def test_child_is_dead_before_its_job_runs_elsewhere_when_heartbeats_are_lost_behind_a_pooler(
    workers: Workers, gate: Gate, proxies: Callable[[], Proxy]
):
    proxy, pooler = proxies(), {"POOLER": True}
    cut_off = workers.start("--no-maintenance", database_url=proxy.url, settings=pooler)
    job = hold.using(max_attempts=2).delay(str(gate))
    gate.wait_for(job)
    (child,) = cut_off.children()

    proxy.cut(How.BLACK_HOLE, New.HOLD, f"{cut_off.name}.")
    workers.start(settings=pooler)
    wait_until(lambda: gate.started(job, attempt=2), timeout=60.0)
    gate.open()

    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert [job.state for job in wait_for_end([job.pk])] == [State.SUCCESS]
