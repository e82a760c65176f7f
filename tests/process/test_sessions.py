"""Sessions and user limits hold, with real workers that fail, retry and are killed."""

from __future__ import annotations

import os
import random
import signal
from collections import defaultdict
from contextlib import suppress

import psutil
import pytest

from django_tenantqueue.models import Job, Session
from django_tenantqueue.states import State
from tests.intervals import most_at_once
from tests.testapp.models import Interval
from tests.testapp.tasks import noop, work

from .tasks import hold, work_until
from .workers import Gate, Workers, make_queue, wait_for_end, wait_for_state, wait_until

FULL = bool(os.environ.get("TENANTQUEUE_FULL_SIZE"))
"""Whether the chaos is to be large."""
SESSIONS = 200 if FULL else 25
JOBS = 50 if FULL else 12


@pytest.mark.heavy
def test_jobs_of_a_session_run_one_after_another_when_workers_are_killed(workers: Workers):
    queue = make_queue("acme", num_slots=100)
    chance = random.Random(11)
    ids = []
    for _ in range(JOBS):
        for session in range(SESSIONS):
            attempts = 2 if chance.random() < 0.1 else 1
            task = work_until.using(tenant="acme", session=session, max_attempts=50)
            ids.append(task.delay(f"s{session}", attempts, 0.05, chance.uniform(0, 10)).pk)
    runners = [workers.start("--threads=4", processes=2) for _ in range(4)]
    finished = Job.objects.filter(queue=queue, final=True)
    kills = 12 if FULL else 4
    for number in range(1, kills + 1):
        enough = number * len(ids) // (kills + 2)
        wait_until(lambda enough=enough: finished.count() >= enough, timeout=200)
        children = [child for runner in runners for child in runner.children()]
        with suppress(psutil.NoSuchProcess):
            chance.choice(children).send_signal(signal.SIGKILL)

    wait_until(lambda: not Job.objects.unfinished().exists(), timeout=400)
    jobs = list(finished)

    assert [job.state for job in jobs] == [State.SUCCESS] * len(ids)
    runs = defaultdict(list)
    for row in Interval.objects.order_by("started_at"):
        runs[row.key].append(row)
    assert len(runs) == SESSIONS
    for rows in runs.values():
        # a run whose process was killed has no end: the next one begins after the death
        closed = [(row.started_at, row.ended_at) for row in rows if row.ended_at is not None]
        assert most_at_once(closed) == 1
        order = [row.job_id for row in rows]
        assert order == sorted(order)
    claims = defaultdict(list)
    for job in jobs:
        claims[job.session_key].append((job.queued_at, job.finished_at))
    assert {most_at_once(intervals) for intervals in claims.values()} == {1}


@pytest.mark.heavy
def test_user_runs_as_many_at_once_as_the_cap_says(workers: Workers):
    make_queue("acme", num_slots=100)
    Session.objects.create(
        kind="limit_user", tenant="acme", key="two", gate_key="acme/two", num_slots=2
    )
    ids = []
    for user, count in (("two", 40), ("other", 40)):
        calls = [(user, 50.0)] * count
        ids += work.using(tenant="acme", limit_user=user).enqueue_many(calls)
    workers.start("--threads=8", processes=2, settings={"DEFAULT_USER_SLOTS": 3})

    jobs = wait_for_end(ids)

    assert {job.state for job in jobs} == {State.SUCCESS}
    at_once = {
        user: most_at_once(Interval.objects.filter(key=user).values_list("started_at", "ended_at"))
        for user in ("two", "other")
    }
    assert at_once == {"two": 2, "other": 3}


@pytest.mark.heavy
def test_next_job_of_a_session_starts_at_once_when_one_has_ended(workers: Workers, gate: Gate):
    workers.start("--threads=2", "--no-maintenance")  # so that no sweep helps
    first = hold.using(session="s").delay(str(gate))
    others = [noop.using(session="s").delay() for _ in range(20)]
    gate.wait_for(first)
    assert {job.refresh().state for job in others} == {State.HELD}

    gate.open()

    for job in others:
        wait_for_state(job, State.SUCCESS)
