"""Monitors feed strictly, whatever races for them."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection, transaction

from django_tenantqueue.exceptions import MonitorEnded, Unsupported
from django_tenantqueue.gate_keys import MONITOR, JobGates
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.operations.gates import keys_of, release
from django_tenantqueue.operations.monitor_control import Feeder, tune_monitor
from django_tenantqueue.queries import monitors as queries
from django_tenantqueue.queries.base import statement
from django_tenantqueue.queries.finish import Finished
from django_tenantqueue.queries.locks import GATE_LOCK_CLASSES, LockClass
from django_tenantqueue.queries.round_trip import exchange
from django_tenantqueue.states import State
from django_tenantqueue.worker.child import release_after_finish
from tests.concurrency.loops import turned_loop
from tests.factories import make_job, make_queue, state_of
from tests.intervals import Limits, breaches, most_at_once
from tests.process.workers import wait_until
from tests.testapp.tasks import echo, noop

UNLIMITED = None


def start(count: int, **options) -> ConcurrentJobMonitor:
    """Start a monitor of `count` noops in a queue without limit."""
    make_queue("acme", num_slots=UNLIMITED)
    details = (noop.call() for _ in range(count))
    return ConcurrentJobMonitor.objects.start("work", details, tenant="acme", **options)


def in_flight(monitor: ConcurrentJobMonitor) -> int:
    """Return how many details have been fed and have not ended."""
    return monitor.details().filter(final=False).exclude(held_by=MONITOR).count()


def finish_and_feed(worker, jobs) -> None:
    """Store the ends of jobs and feed their monitors, as a worker does."""
    ends = [Finished(job.id, job.claim_seq, "success", 0.0) for job in jobs]
    ends.sort(key=lambda end: end.id)
    feed = sorted(keys_of(JobGates.read(job.gates) for job in jobs).get(MONITOR, ()))
    answer = exchange(worker.db, worker.id, finished=ends, feed=feed)
    assert len(answer.finished) == len(jobs)
    if answer.fed.later:
        release(worker.db, answer.fed.later)


def test_no_more_are_in_flight_when_releases_race(worker_factory, threads):
    monitor = start(300, parallel=4)
    # at each moment a detail is in flight from its claim to its end: see the rows
    barrier = threading.Barrier(6)

    def work() -> int:
        worker = worker_factory()
        ran = 0
        chance = random.Random(ran)
        barrier.wait(20)
        while monitor.details().filter(final=False).exists():
            jobs = worker.claim(chance.randint(1, 4))
            details = [job for job in jobs if job.id != monitor.anchor_id]
            assert in_flight(monitor) <= 4
            ran += len(details)
            if jobs:
                finish_and_feed(worker, jobs)
            elif chance.random() < 0.2:
                release(worker.db, {MONITOR: {str(monitor.pk)}})
        return ran

    assert sum(done.result(60) for done in [threads.start(work) for _ in range(6)]) == 300

    rows = monitor.details().values_list("queued_at", "finished_at")
    assert most_at_once(rows) <= 4


def wait_for_claim(job: Job) -> None:
    with transaction.atomic():
        Job.objects.filter(pk=job.pk, final=False).select_for_update().values_list("pk").first()


def test_limit_holds_when_it_is_edited_while_releases_race(worker_factory, threads):
    monitor = start(300, parallel=8)
    limits = Limits(8)
    done = threading.Event()

    def clock():
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            return cursor.fetchone()[0]

    def work() -> None:
        worker = worker_factory()
        while monitor.details().filter(final=False).exists():
            jobs = worker.claim(3)
            if jobs:
                finish_and_feed(worker, jobs)

    def edit() -> None:
        chance = random.Random(3)
        while not done.is_set():
            parallel, before = chance.choice([1, 2, 5, 8]), clock()
            tune_monitor(monitor.pk, parallel=parallel)
            # a release that somebody else held up is made up for by the duty
            Feeder().step("default")
            for fed in monitor.details().filter(state=State.READY):
                wait_for_claim(fed)  # which may have begun before, and count from now on
            limits.change(parallel, before=before, after=clock())
            done.wait(0.02)

    editor = threads.start(edit)
    workers = [threads.start(work) for _ in range(4)]
    for worker in workers:
        worker.result(60)
    done.set()
    editor.result(20)

    rows = list(monitor.details().values_list("queued_at", "finished_at"))
    assert len(rows) == 300
    assert breaches(rows, limits) == []


def test_worker_feeds_in_its_own_exchange(worker):
    monitor = start(5, parallel=2)
    jobs = worker.claim(10)
    assert len(jobs) == 2

    ends = [Finished(jobs[0].id, jobs[0].claim_seq, "success", 0.0)]
    request = worker.claimer.request(10, 0)
    answer = exchange(worker.db, worker.id, finished=ends, request=request, feed=[str(monitor.pk)])

    assert answer.fed.ready == 1
    assert answer.fed.later == {}
    assert len(answer.jobs) == 1


def test_plan_is_made_anew_when_the_named_gates_are_gone(worker):
    monitor = start(5, parallel=2)
    finish_and_feed(worker, worker.claim(1))
    worker.db.execute("DISCARD PLANS")

    assert release(worker.db, {MONITOR: {str(monitor.pk)}}).ready == 0


def test_gate_is_handed_back_when_somebody_else_lets_through(worker, open_connection):
    monitor = start(5, parallel=2)
    jobs = worker.claim(10)
    other = open_connection()
    with other.transaction():
        hold_gate(other, GATE_LOCK_CLASSES[MONITOR], monitor)

        ends = [Finished(jobs[0].id, jobs[0].claim_seq, "success", 0.0)]
        answer = exchange(worker.db, worker.id, finished=ends, feed=[str(monitor.pk)])

        assert answer.fed.ready == 0
        assert answer.fed.later == {MONITOR: {str(monitor.pk)}}
        assert release(worker.db, answer.fed.later).ready == 0  # after 50 ms
    assert Feeder().step("default") == 1


def test_monitor_does_not_end_while_details_are_added(threads):
    monitor = start(0, parallel=2, keep_open=True, on_end=echo.call("done"))
    added, may_commit = threading.Event(), threading.Event()

    def add() -> None:
        with transaction.atomic():
            monitor.add([noop.call()])
            added.set()
            assert may_commit.wait(20)

    adding = threads.start(add)
    assert added.wait(20)
    monitor.close()
    Feeder().step("default")
    assert Job.objects.get(pk=monitor.anchor_id).held_by == "details"

    may_commit.set()
    adding.result(20)

    assert Job.objects.get(pk=monitor.anchor_id).held_by == "details"
    assert monitor.details().get().state == "ready"


def test_nothing_is_added_when_it_has_ended_meanwhile(threads, open_connection):
    monitor = start(0, parallel=2, keep_open=True)
    other = open_connection()
    with other.transaction():
        hold_gate(other, LockClass.MONITOR_ADDITION, monitor)
        adding = threads.start(lambda: monitor.add([noop.call()]))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: other.execute(waiting).fetchone()[0], what="the addition waits")
        other.execute(
            "UPDATE tenantqueue_job_hot SET state = 'ready', held_by = NULL WHERE id = %s",
            [monitor.anchor_id],
        )
        assert not adding.done()

    with pytest.raises(MonitorEnded):
        adding.result(20)


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
def test_addition_is_refused_where_its_snapshot_may_be_old(isolation):
    monitor = start(0, parallel=2, keep_open=True)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}")
        with pytest.raises(Unsupported, match="needs a READ COMMITTED transaction"):
            monitor.add([noop.call()])

    assert not monitor.details().exists()


def test_details_are_added_when_the_project_has_another_isolation():
    monitor = start(0, parallel=2, keep_open=True)
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_isolation = 'repeatable read'")
        try:
            assert monitor.add([noop.call()]) == 1
        finally:
            cursor.execute("RESET default_transaction_isolation")


def test_what_was_fed_is_announced_when_a_monitor_cannot_be_ended_now(open_connection):
    ending = start(0, parallel=1, keep_open=True)
    feeding = ConcurrentJobMonitor.objects.start(
        "work", [noop.using(limit_user="7").call()], tenant="acme", parallel=1, priority=240
    )
    ConcurrentJobMonitor.objects.filter(pk=ending.pk).update(keep_open=False)
    Job.objects.filter(monitor_id=feeding.pk, limit_user="acme/7").update(
        state="held", held_by="monitor"
    )

    def held_up(where, keys):
        raise psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "lock_additions", held_up)
        done = release(open_connection(), {MONITOR: {str(ending.pk), str(feeding.pk)}})

    assert done.ready == 1
    assert Feeder().step("default") == 1
    assert state_of(ending.anchor_id) == "ready"


def test_callback_is_enqueued_once_when_all_release_the_last_details(worker_factory, threads):
    monitor = start(8, parallel=8, on_end=echo.call("done"))
    workers = [worker_factory() for _ in range(8)]
    claims = [worker.claim(1) for worker in workers]
    barrier = threading.Barrier(8)

    def end(number: int) -> None:
        barrier.wait(20)
        finish_and_feed(workers[number], claims[number])

    for done in [threads.start(end, number) for number in range(8)]:
        done.result(20)
    Feeder().step("default")

    anchor = Job.objects.get(pk=monitor.anchor_id)
    assert (anchor.state, anchor.claim_seq) == ("ready", 0)
    assert len(workers[0].claim(10)) == 1
    assert workers[1].claim(10) == []


def test_operators_row_lock_holds_up_no_release(worker, open_connection):
    monitor = start(5, parallel=2)
    jobs = worker.claim(10)
    other = open_connection()
    with other.transaction():
        other.execute(
            "SELECT id FROM tenantqueue_concurrentjobmonitor WHERE id = %s FOR UPDATE", [monitor.pk]
        )
        other.execute(
            "SELECT id FROM tenantqueue_job_hot WHERE held_by = 'monitor' ORDER BY id LIMIT 1 "
            "FOR UPDATE"
        )

        finish_and_feed(worker, jobs)

    assert in_flight(monitor) == 2  # the one that was locked is passed over


@contextmanager
def fed_by_somebody_else(connection, monitor: ConcurrentJobMonitor):
    """Hold the lock of a release of a monitor inside the with block."""
    with connection.transaction():
        hold_gate(connection, GATE_LOCK_CLASSES[MONITOR], monitor)
        yield


def hold_gate(connection, lock_class: int, monitor: ConcurrentJobMonitor) -> None:
    """Take the lock of a monitor until the commit."""
    connection.execute(
        statement("lock_gates"), {"lock_class": lock_class, "keys": [str(monitor.pk)]}
    )


def end(loop, job_id: int) -> None:
    (running,) = [running for running in loop.executor.jobs if running.id == job_id]
    loop.end(running, gates=running._claimed.gates)
    loop.turn_until(lambda: state_of(job_id) == "success")


def test_monitor_is_fed_with_the_next_completions_when_somebody_else_was_at_it(
    open_connection, monkeypatch
):
    monkeypatch.setattr(release_after_finish, "POSTPONE_SECONDS", 60.0)
    monitor = start(10, parallel=4)
    other = make_job()
    with turned_loop(threads=5) as loop:
        loop.take(5)
        with fed_by_somebody_else(open_connection(), monitor):
            end(loop, monitor.details().filter(state="queued").first().pk)
            assert in_flight(monitor) == 3

        end(loop, other.pk)

        assert in_flight(monitor) == 4


def test_monitor_is_fed_soon_when_somebody_else_was_at_it_and_nothing_ends(open_connection):
    monitor = start(10, parallel=4)
    with turned_loop(threads=4) as loop:
        loop.take(4)
        loop.claim_loop.claimed_jobs.draining = True
        with fed_by_somebody_else(open_connection(), monitor):
            end(loop, monitor.details().filter(state="queued").first().pk)

        loop.turn_until(lambda: in_flight(monitor) == 4, seconds=2.0)


def test_monitor_is_not_left_for_later_when_nothing_runs(open_connection, monkeypatch):
    monkeypatch.setattr(release_after_finish, "POSTPONE_SECONDS", 60.0)
    released: list[set[str]] = []
    real = release_after_finish.release

    def counted(connection, keys):
        released.append(set(keys.get(MONITOR, ())))
        return real(connection, keys)

    monkeypatch.setattr(release_after_finish, "release", counted)
    monitor = start(10, parallel=1)
    with turned_loop(threads=1) as loop:
        loop.take(1)
        with fed_by_somebody_else(open_connection(), monitor):
            end(loop, monitor.details().filter(state="queued").first().pk)

    assert released == [{str(monitor.pk)}]


@pytest.mark.parametrize(
    ("parallel", "queue", "others"), [(5, None, 0), (3, None, 2), (5, "own", 4)]
)
def test_second_monitor_runs_beside_the_first_when_that_leaves_slots_or_has_a_queue(
    worker, parallel, queue, others
):
    for name in ("default", "own"):
        make_queue("acme", name, num_slots=5)
    details = [noop.call() for _ in range(20)]
    start_monitor = ConcurrentJobMonitor.objects.start
    first = start_monitor("first", details, tenant="acme", queue=queue, parallel=parallel)
    second = start_monitor("second", details[:4], tenant="acme", parallel=4)

    claimed = [job.id for job in worker.claim(20)]

    assert len(claimed) == parallel + others
    assert first.details().filter(pk__in=claimed).count() == parallel
    assert second.details().filter(pk__in=claimed).count() == others
