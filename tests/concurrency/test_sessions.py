"""Guarantee 8: one job of a session at a time, whoever enqueues, ends and lets through at once."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from django_tenantqueue import Serial
from django_tenantqueue.gate_keys import SESSION, JobGates, gate_key
from django_tenantqueue.models import Job, Session
from django_tenantqueue.operations import control
from django_tenantqueue.operations.gates import Sweep, keys_of, release, release_in_transaction
from django_tenantqueue.operations.session_control import (
    make_user_limit,
    pause_sessions,
    resume_sessions,
    tune_session,
)
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.queries.gates import lock_gates, prune_sessions
from django_tenantqueue.queries.workers import listen
from django_tenantqueue.states import State
from tests.testapp.tasks import noop
from tests.timing import assert_within

from .conftest import SECONDS

KEY = gate_key("acme", "s")
KEYS = {SESSION: {KEY}}


def enqueue(count: int = 1, **options: Any) -> list[int]:
    options = {"session": "s", "tenant": "acme", **options}
    return noop.using(**options).enqueue_many([()] * count)


def inside() -> list[int]:
    """Return the jobs that have been let through and have not ended."""
    return list(
        Job.objects.unfinished()
        .filter(session_key=KEY)
        .exclude(state=State.HELD)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def end(worker, jobs: list[ClaimedJob]) -> None:
    """Store the ends of jobs and let others through, as a worker does."""
    worker.finish(jobs)
    release(worker.db, keys_of(JobGates.read(job.gates) for job in jobs))


def test_nobody_waits_when_a_transaction_that_enqueued_stays_open(threads, worker):
    opened, close = threading.Event(), threading.Event()

    def hold() -> list[int]:
        with transaction.atomic():
            ids = enqueue()
            opened.set()
            assert close.wait(20)
        return ids

    holder = threads.start(hold)
    assert opened.wait(20)
    second, third = enqueue(), enqueue()

    assert inside() == second
    claimed = worker.claim(1)  # else the first one would take its place
    close.set()
    first = holder.result(20)

    order = []
    while claimed:
        order += [job.id for job in claimed]
        end(worker, claimed)
        claimed = worker.claim(1)
    assert first < second < third
    assert order == [*second, *first, *third]


def test_sweep_finds_what_a_crash_has_kept_from_its_release():
    with transaction.atomic():
        ids = enqueue(2)
        connection.run_on_commit.clear()  # as if the process had died after its commit
    assert inside() == []

    assert Sweep().step("default") == 1

    assert inside() == ids[:1]


def test_enqueue_waits_for_no_release_and_the_sweep_does_what_it_could_not(open_connection):
    other = open_connection()
    with other.transaction():
        lock_gates(other, SESSION, [KEY])
        began = time.monotonic()
        ids = enqueue(2)
        waited = time.monotonic() - began
        assert inside() == []
        assert Sweep().step("default") == 0
    assert_within(5.0, waited)  # it gives up after 50 ms; without a limit it would wait for ever

    Sweep().step("default")

    assert inside() == ids[:1]


def test_connection_of_a_worker_goes_on_when_its_release_gets_no_lock(worker, open_connection):
    with transaction.atomic():
        ids = enqueue(2)
        connection.run_on_commit.clear()
    other = open_connection()
    with other.transaction():
        lock_gates(other, SESSION, [KEY])
        assert release(worker.db, KEYS).ready == 0

    assert release(worker.db, KEYS).ready == 1
    assert inside() == ids[:1]


def test_release_waits_for_another_of_the_same_gate(open_connection):
    other = open_connection()
    release("default", KEYS)  # makes the row: else its insertion is what is waited for
    with transaction.atomic():
        usual = enqueue()
        connection.run_on_commit.clear()
    with other.transaction():
        assert release_in_transaction(other, KEYS).ready == 1
        urgent = enqueue(priority=1)  # its own release cannot see the other's
        assert inside() == []

    assert inside() == usual
    Sweep().step("default")
    release("default", KEYS)
    assert inside() == urgent


def store(worker, jobs: list[ClaimedJob], *, failed: bool) -> None:
    """Store the ends of jobs, again when a row was locked for long, as a worker does."""
    while True:
        try:
            assert worker.fail(jobs) if failed else worker.finish(jobs)
        except psycopg.errors.LockNotAvailable:
            continue
        return


def test_release_is_strict_when_many_race(threads, worker_factory):
    ids = enqueue(60)
    workers = [worker_factory() for _ in range(6)]
    seen: list[int] = []
    twice: list[list[int]] = []

    def run(worker, seed: int) -> None:
        chance = random.Random(seed)
        while Job.objects.unfinished().exists():
            jobs = worker.claim(3)
            if len(now := inside()) > 1:
                twice.append(now)
            seen.extend(job.id for job in jobs)
            if jobs:
                may_fail = all(job.attempt < job.max_attempts for job in jobs)
                store(worker, jobs, failed=may_fail and chance.random() < 0.2)
            release(worker.db, KEYS)

    running = [threads.start(run, worker, number) for number, worker in enumerate(workers)]
    for one in running:
        one.result(120)

    assert twice == []
    assert sorted(set(seen)) == ids
    assert list(dict.fromkeys(seen)) == ids  # each began after those before it


def test_released_job_that_is_being_claimed_is_not_taken_back(worker):
    usual = enqueue()
    with worker.open_claim(1) as claimed:
        assert [job.id for job in claimed] == usual
        urgent = enqueue(priority=1)
        assert inside() == usual

    assert inside() == usual
    end(worker, claimed)
    assert inside() == urgent


def test_job_that_an_operator_holds_is_let_through_later(open_connection):
    first, second = enqueue(2)
    other = open_connection()
    with other.transaction():
        other.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [second])
        other.execute("DELETE FROM tenantqueue_job_hot WHERE id = %s", [first])
    assert inside() == []

    with other.transaction():
        other.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [second])
        assert Sweep().step("default") == 0
    assert Sweep().step("default") == 1

    assert inside() == [second]


def test_session_halts_when_its_row_was_removed_while_its_job_came():
    """The pruning may look before a job comes, and remove the row after its release."""
    [job] = enqueue(session=Serial("s", on_failure="halt"))
    Session.objects.all().delete()

    assert control.cancel([job])[0]

    assert Session.objects.get().halted_by == job


@pytest.mark.parametrize("bulk", [True, False])
def test_released_job_wakes_a_worker(worker, bulk):
    connection_of_worker = worker.db
    listen(connection_of_worker, worker.id)
    connection_of_worker.execute(
        "UPDATE tenantqueue_worker SET sleeping_until = now() + interval '1 hour' WHERE id = %s",
        [worker.id],
    )

    if bulk:
        enqueue(2)
    else:
        noop.using(session="s", tenant="acme").delay()

    (note,) = connection_of_worker.notifies(timeout=5, stop_after=1)
    assert note.channel.endswith(f"_{worker.id}")


def test_caps_of_users_are_set_whatever_is_pruned_meanwhile(threads):
    """A row is removed before a change or after it: each change finds its row, or makes it."""
    over = threading.Event()

    def prune() -> None:
        while not over.is_set():
            prune_sessions("default", after=0, most=100, keep_seconds=0.0)

    def change() -> None:
        for _ in range(40):
            cap = make_user_limit("acme", "7", num_slots=3)
            assert cap.num_slots == 3
            assert pause_sessions([cap.pk]) == [cap.pk]
            assert resume_sessions([cap.pk]) == [cap.pk]
            tune_session(cap.pk, num_slots=None)  # idle from here on: it may be removed

    pruning = threads.start(prune)
    try:
        threads.run(change)
    finally:
        over.set()
    pruning.result(SECONDS)
