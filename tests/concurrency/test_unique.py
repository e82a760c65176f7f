"""Unique jobs: each mode at each moment, and several transactions at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from django_tenantqueue import Job, Unique
from django_tenantqueue.calls.unique import MODES
from django_tenantqueue.models import UniqueKey
from django_tenantqueue.operations import control, rescue, unique
from django_tenantqueue.operations.rescue import DeathReport
from django_tenantqueue.operations.unique import KeyPruning
from django_tenantqueue.queries import unique as queries
from tests.concurrency.test_enqueue import held_open
from tests.factories import FakeWorker, make_jobs, make_queue, state_of
from tests.process.workers import wait_until
from tests.testapp.tasks import echo, noop

SECONDS = 20.0


def wanting(mode: str, **more: Any) -> Any:
    if mode.startswith("until_"):
        more.setdefault("ttl", 600)
    return noop.using(tenant="acme", max_attempts=3, unique=Unique(mode, **more))


# each mode at each moment


def nothing(worker: FakeWorker, job: Job) -> None:
    """Leave the job where it waits."""


def start(worker: FakeWorker, job: Job) -> None:
    assert [claimed.id for claimed in worker.claim()] == [job.pk]


def start_and_note(worker: FakeWorker, job: Job) -> None:
    start(worker, job)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenantqueue_job_hot SET state = 'running', started_at = now()")


def fail(worker: FakeWorker, job: Job) -> None:
    worker.fail(worker.claim(), delay=60)


def give_back(worker: FakeWorker, job: Job) -> None:
    worker.give_back(worker.claim())


def finish(worker: FakeWorker, job: Job) -> None:
    """End the job; its key stays, as after a crash between the end and the letting go."""
    worker.finish(worker.claim())
    assert UniqueKey.objects.count() == (job.unique_mode or "").startswith("until_")


def end_in_error(worker: FakeWorker, job: Job) -> None:
    worker.finish(worker.claim(), "error")


def cancel(worker: FakeWorker, job: Job) -> None:
    assert control.cancel([job.pk]) == ([job.pk], [])


def crash(worker: FakeWorker, job: Job) -> None:
    """Let the worker die that runs it: it is to run again."""
    worker.claim()
    rescue.rescue_worker("default", worker.id, DeathReport("gone"))
    assert state_of(job.pk) == "ready"


def crash_at_last(worker: FakeWorker, job: Job) -> None:
    """Let the worker die that runs it, in its last attempt."""
    worker.claim()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenantqueue_job_hot SET max_attempts = 1")
    rescue.rescue_worker("default", worker.id, DeathReport("gone"))
    assert state_of(job.pk) == "error"


def expire(worker: FakeWorker, job: Job) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenantqueue_uniquekey SET expires_at = now() - interval '1 s'")


def start_and_expire(worker: FakeWorker, job: Job) -> None:
    start(worker, job)
    expire(worker, job)


def lose_the_row(worker: FakeWorker, job: Job) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM tenantqueue_job_hot")


MOMENTS: dict[Callable[[FakeWorker, Job], None], tuple[str, ...]] = {
    # until executing, executed, expired, and while; while executing, reject
    nothing: ("existing", "existing", "existing", "existing", "held", "cancelled"),
    start: ("ready", "existing", "existing", "held", "held", "cancelled"),
    start_and_note: ("ready", "existing", "existing", "held", "held", "cancelled"),
    fail: ("existing", "existing", "existing", "existing", "ready", "ready"),
    give_back: ("existing", "existing", "existing", "existing", "held", "cancelled"),
    finish: ("ready", "ready", "existing", "ready", "ready", "ready"),
    end_in_error: ("ready", "ready", "existing", "ready", "ready", "ready"),
    cancel: ("ready", "ready", "existing", "ready", "ready", "ready"),
    crash: ("existing", "existing", "existing", "existing", "held", "cancelled"),
    crash_at_last: ("ready", "ready", "existing", "ready", "ready", "ready"),
    expire: ("ready", "ready", "ready", "held", "held", "cancelled"),
    start_and_expire: ("ready", "ready", "ready", "held", "held", "cancelled"),
    lose_the_row: ("ready", "ready", "existing", "ready", "ready", "ready"),
}
"""What becomes of a call when the existing job has come to this moment: see uniqueness.md."""
ROWS = [
    pytest.param(moment, mode, expected, id=f"{mode}-{moment.__name__}")
    for moment, by_mode in MOMENTS.items()
    for mode, expected in zip(MODES, by_mode, strict=True)
]


@pytest.mark.parametrize("in_bulk", [False, True], ids=["one", "bulk"])
@pytest.mark.parametrize(("moment", "mode", "expected"), ROWS)
def test_call_comes_to_what_the_table_says(moment, mode, expected, in_bulk, worker):
    task = wanting(mode)
    existing_job = task.delay().refresh()
    assert existing_job.state == "ready"
    moment(worker, existing_job)
    if in_bulk:
        (job_id,) = task.enqueue_many([()])
    else:
        job = task.delay()
        job_id = job.pk
        assert job.duplicate == (expected == "existing")

    assert (job_id == existing_job.pk) == (expected == "existing")
    if expected != "existing":
        assert state_of(job_id) == expected


@pytest.mark.parametrize("mode", ["until_executing", "until_and_while_executing"])
def test_retry_runs_when_a_newer_job_has_its_key(mode, worker):
    task = wanting(mode)
    first = task.delay()
    (claimed,) = worker.claim()
    second = task.delay()
    assert second.pk != first.pk
    worker.fail([claimed], delay=60)

    assert task.delay().pk == second.pk
    assert control.run_now([first.pk]) == [first.pk]
    served = {job.id for job in worker.claim_all()}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM tenantqueue_job_hot WHERE state = 'held'")
        assert cursor.fetchone()[0] == (mode == "until_and_while_executing")
    assert served | set(Job.objects.unfinished().values_list("pk", flat=True)) == {
        first.pk,
        second.pk,
    }


def test_rejecting_job_waits_when_it_had_an_attempt(worker):
    task = wanting("while_executing_reject")
    first = task.delay()
    worker.fail(worker.claim(), delay=60)
    second = task.delay()
    control.run_now([first.pk])

    assert (state_of(second.pk), state_of(first.pk)) == ("ready", "held")


@pytest.mark.parametrize("strategy", ["return", "log", "replace", "reschedule"])
def test_running_twin_is_left_alone(strategy, worker):
    existing_job = wanting("until_executed").delay()
    start(worker, existing_job)
    job = wanting("until_executed", on_conflict=strategy).using(run_at=timedelta(hours=1)).delay()

    assert (job.pk, job.duplicate) == (existing_job.pk, True)
    assert existing_job.refresh().state == "queued"


# two transactions


def waiting_for_a_lock() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND wait_event = 'transactionid' AND datname = current_database()"
        )
        return cursor.rowcount


@contextmanager
def transaction_of(threads, function) -> Iterator[tuple[Any, Callable[[bool], None]]]:
    """Call `function` in a transaction of a thread; yield what it returned, and how to end it."""
    reached, go = threading.Event(), threading.Event()
    made: list[Any] = []
    keep = True

    def hold():
        with transaction.atomic():
            made.append(function())
            reached.set()
            assert go.wait(SECONDS)
            if not keep:
                transaction.set_rollback(True)

    holder = threads.start(hold)

    def end(commit: bool) -> None:
        nonlocal keep
        keep = commit
        go.set()
        holder.result(SECONDS)

    try:
        assert reached.wait(SECONDS), holder.result(0)
        yield made[0], end
    finally:
        go.set()


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "rollback"])
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode.startswith("until_")])
def test_second_enqueue_waits_for_the_first_of_its_key_alone(mode, commits, threads, worker):
    running = make_jobs(make_queue("acme", name="other"), 1)
    claimed = worker.claim(1)
    with transaction_of(threads, wanting(mode, key="k").delay) as (first, end):
        second = threads.start(wanting(mode, key="k").delay)
        wait_until(waiting_for_a_lock)
        other = threads.run(wanting(mode, key="other").delay)
        plain = threads.run(noop.using(tenant="acme").delay)
        assert worker.finish(claimed) == set(running)
        assert {job.id for job in worker.claim()} == {other.pk, plain.pk}
        assert not second.done()
        end(commits)

        assert (second.result(SECONDS).pk == first.pk) == commits
    assert Job.objects.filter(unique_key="acme/k").count() == 1


@pytest.mark.parametrize("mode", ["while_executing", "while_executing_reject"])
def test_nobody_waits_when_only_the_run_is_unique(mode, threads):
    with held_open(threads, wanting(mode).delay):
        assert threads.run(wanting(mode).delay).refresh().state == "ready"


def test_nothing_of_a_unique_job_is_left_when_it_is_rolled_back():
    with transaction.atomic():
        wanting("until_executed").delay()
        transaction.set_rollback(True)

    assert not UniqueKey.objects.exists()
    assert not Job.objects.exists()


def test_one_gets_a_stale_key_when_two_take_it_over(threads, worker):
    task = wanting("until_executed")
    task.delay()
    worker.finish(worker.claim())
    with transaction_of(threads, task.delay) as (first, end):
        second = threads.start(task.delay)
        wait_until(waiting_for_a_lock)
        end(True)

        assert second.result(SECONDS).pk == first.pk
    assert Job.objects.unfinished().count() == 1


def test_bulk_calls_do_not_meet_crosswise(threads):
    task = echo.using(
        tenant="acme", unique=Unique("until_executed", key=lambda value: f"{value:03}")
    )
    values = list(range(100))
    with transaction_of(threads, lambda: task.delay(50)) as (_, end):
        made = [threads.start(task.enqueue_many, values[::step]) for step in (1, -1, 1, -1)]
        wait_until(lambda: waiting_for_a_lock() == len(made))
        end(False)

    ids = [future.result(SECONDS) for future in made]
    assert ids[0] == ids[1][::-1] == ids[2] == ids[3][::-1]
    assert Job.objects.count() == 100


@pytest.mark.parametrize("mode", ["until_executing", "until_and_while_executing"])
def test_waiting_job_starts_after_the_commit_of_those_who_rely_on_it(mode, threads, worker):
    task = wanting(mode)
    job = task.delay()
    with (
        transaction_of(threads, task.delay) as (first, end_first),
        transaction_of(threads, task.delay) as (second, end_second),
    ):
        assert first.pk == second.pk == job.pk
        assert threads.run(task.delay).pk == job.pk
        assert worker.claim() == []
        end_first(True)
        assert worker.claim() == []
        end_second(False)
        worker.claimer.places.forget_blocked()
        assert [claimed.id for claimed in worker.claim()] == [job.pk]


def test_job_of_which_the_end_is_wanted_starts_at_once(threads, worker):
    task = wanting("until_executed")
    job = task.delay()
    with held_open(threads, task.delay):
        (claimed,) = worker.claim()
        assert worker.finish([claimed]) == {job.pk}


def start_before_the_lock(monkeypatch, worker) -> list[Any]:
    """Let the worker claim between the look at an existing job and the attempt to keep it."""
    claimed: list[Any] = []
    lock_existing_jobs = queries.lock_existing_jobs

    def late(*args: Any, **kwargs: Any) -> set[int]:
        claimed.extend(worker.claim())
        return lock_existing_jobs(*args, **kwargs)

    monkeypatch.setattr(queries, "lock_existing_jobs", late)
    return claimed


@pytest.mark.parametrize("mode", ["until_executing", "until_and_while_executing"])
def test_update_is_not_lost_when_the_twin_starts_in_between(mode, threads, worker, monkeypatch):
    task = wanting(mode)
    job = task.delay()
    claimed = start_before_the_lock(monkeypatch, worker)
    with transaction_of(threads, task.delay) as (second, end):
        assert second.pk != job.pk
        worker.db.execute("SET lock_timeout = '2s'")
        assert worker.finish(claimed) == {job.pk}  # nobody has a lock on what runs
        end(True)

    assert state_of(second.pk) in ("ready", "held")


def test_lock_on_a_twin_that_has_started_is_let_go(threads, worker, monkeypatch):
    """A row may be locked although it is no longer what was looked for: it is not returned."""
    lock_existing_jobs = queries.lock_existing_jobs
    claimed: list[Any] = []
    locked: list[set[int]] = []

    def in_vain_at_first(*args: Any, **kwargs: Any) -> set[int]:
        if locked:
            claimed.extend(worker.claim())
        locked.append(lock_existing_jobs(*args, **kwargs))
        return set() if len(locked) == 1 else locked[-1]

    monkeypatch.setattr(queries, "lock_existing_jobs", in_vain_at_first)
    task = wanting("until_executing")
    job = task.delay()
    with transaction_of(threads, task.delay) as (second, end):
        assert locked == [{job.pk}, set()]
        assert [taken.id for taken in claimed] == [job.pk]
        assert second.pk != job.pk
        end(True)


def test_update_is_not_lost_when_somebody_has_the_twin_in_hand(
    threads, open_connection, monkeypatch
):
    monkeypatch.setattr(unique, "SETTLE_SECONDS", 0.05)
    task = wanting("until_and_while_executing")
    job = task.delay()
    db = open_connection()
    with db.transaction():
        db.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [job.pk])
        with transaction_of(threads, task.delay) as (second, end):
            assert second.pk != job.pk
            end(True)
        assert threads.run(task.delay).pk == second.pk


def test_transactions_do_not_keep_a_job_for_ever(threads, worker, monkeypatch):
    monkeypatch.setattr(unique, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(unique, "SETTLE_SECONDS", 0.05)
    task = wanting("until_and_while_executing")
    job = task.delay()
    with transaction_of(threads, task.delay) as (first, end_first):
        assert first.pk == job.pk
        with transaction_of(threads, task.delay) as (second, end_second):
            assert second.pk != job.pk  # it does not join
            end_first(True)
            assert [claimed.id for claimed in worker.claim()] == [job.pk]
            end_second(True)


def test_waiting_twin_is_there_again_when_its_replacement_is_rolled_back(threads, worker):
    old = wanting("until_executed").delay()
    replacing = wanting("until_executed", on_conflict="replace").delay
    with transaction_of(threads, replacing) as (new, end):
        assert new.pk != old.pk
        assert worker.claim() == []
        end(False)

    assert wanting("until_executed").delay().pk == old.pk
    worker.claimer.places.forget_blocked()
    assert [claimed.id for claimed in worker.claim()] == [old.pk]


def test_replacement_pauses_when_somebody_has_the_twin_in_hand(open_connection, monkeypatch):
    old = wanting("until_expired").delay()
    db = open_connection()
    db.execute("BEGIN")
    db.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [old.pk])
    pauses: list[float] = []

    def let_go(seconds: float) -> None:
        pauses.append(seconds)
        db.execute("COMMIT")

    monkeypatch.setattr(unique.time, "sleep", let_go)
    new = wanting("until_expired", on_conflict="replace").delay()

    assert pauses == [unique.RETRY_SECONDS]
    assert (state_of(old.pk), state_of(new.pk)) == ("cancelled", "ready")


def test_old_snapshot_gets_a_serialization_failure_and_no_second_job(threads):
    task = wanting("until_executed")

    def enqueue_late() -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("SELECT count(*) FROM tenantqueue_job")
            early.append(threads.run(task.delay).pk)
            task.delay()

    early: list[int] = []
    noop.using(tenant="acme").delay()  # the queue is there
    with pytest.raises(OperationalError, match="could not serialize"):
        enqueue_late()

    assert task.delay().pk == early[0]


def test_snapshot_of_its_own_sees_the_twin(threads):
    task = wanting("until_executed")
    job = task.delay()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        assert task.delay().pk == job.pk
        assert task.using(queue="other").delay().pk == job.pk


# letting go


def test_enqueue_joins_the_job_that_takes_its_stale_key_back(threads, worker):
    task = wanting("until_executed")
    job = task.delay()
    end_in_error(worker, job)
    control.cancel([task.delay().pk])
    with transaction_of(threads, lambda: control.retry([job.pk])) as (back, end):
        assert back == [job.pk]
        second = threads.start(task.delay)
        wait_until(waiting_for_a_lock)
        end(True)
        assert second.result(SECONDS).pk == job.pk

    assert UniqueKey.objects.get().job_id == job.pk


def test_one_gets_a_stale_key_when_two_are_brought_back(threads, worker):
    task = wanting("until_executed")
    jobs = []
    for _ in range(2):
        jobs.append(task.delay())
        end_in_error(worker, jobs[-1])
    control.cancel([task.delay().pk])
    with transaction_of(threads, lambda: control.retry([jobs[0].pk])) as (_, end):
        second = threads.start(lambda: control.retry([jobs[1].pk]))
        wait_until(waiting_for_a_lock)
        end(True)
        assert second.result(SECONDS) == [jobs[1].pk]

    assert UniqueKey.objects.get().job_id == jobs[0].pk
    assert task.delay().pk == jobs[0].pk


def test_worker_does_not_wait_for_a_key_that_is_being_taken_over(threads, worker):
    task = wanting("until_executing", key="k")
    job = task.delay()
    claimed = worker.claim()
    with transaction_of(threads, task.delay) as (second, end):
        assert second.pk != job.pk
        worker.finish(claimed)
        worker.db.execute("SET lock_timeout = '2s'")
        queries.free_keys(worker.db, [("acme/k", job.pk)])
        assert KeyPruning().step("default") == 0
        end(True)

    queries.free_keys(worker.db, [("acme/k", job.pk)])
    assert UniqueKey.objects.get().job_id == second.pk
    assert task.delay().pk == second.pk


def test_key_stays_when_its_job_came_back_before_it_was_let_go(worker):
    task = wanting("until_executed", key="k")
    job = task.delay()
    worker.finish(worker.claim(), "error")
    control.retry([job.pk])
    queries.free_keys(worker.db, [("acme/k", job.pk)])

    assert task.delay().pk == job.pk


def test_duplicates_occupy_no_worker_beside_other_jobs(threads, worker_factory):
    """Ten thousand duplicates: no row, no claim, and other jobs are served meanwhile."""
    make_queue("acme", num_slots=50)
    task = echo.using(tenant="acme", unique=Unique("until_executed"), run_at=timedelta(hours=1))
    job = task.delay(0)
    others = make_jobs(make_queue(num_slots=50), 500)

    def repeat() -> set[int]:
        found = {task.delay(0).pk for _ in range(1500)}
        return found | set(task.enqueue_many([0] * 1000))

    calls = [threads.start(repeat) for _ in range(4)]
    served = worker_factory().claim_all()

    assert [future.result(60) for future in calls] == [{job.pk}] * 4
    assert sorted(claimed.id for claimed in served) == others
    assert Job.objects.count() == 501
    assert Job.objects.get(pk=job.pk).claim_seq == 0
