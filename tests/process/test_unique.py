"""Unique jobs under real workers: no update is lost, no key is left behind."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from django_tenantqueue import Job
from django_tenantqueue.models import UniqueKey
from tests.intervals import most_at_once
from tests.testapp.models import Effect, Interval

from .tasks import hold_alone, look_at_updates
from .workers import Gate, Workers, wait_for_end, wait_for_state, wait_until

UPDATES = 1000
COUNTED = """
    SELECT
        count(*) FILTER (WHERE state IN ('scheduled', 'held', 'ready')),
        count(*) FILTER (WHERE state IN ('queued', 'running'))
    FROM tenantqueue_job_hot WHERE task = %s
"""


@pytest.mark.heavy
def test_last_of_a_thousand_updates_is_seen_when_they_come_during_runs(workers: Workers):
    """Mostly one waits, one runs at most, and what came last is seen by a later run."""
    workers.start("--threads=4", processes=2)
    ids: set[int] = set()
    counts: set[tuple[int, int]] = set()
    over = threading.Event()

    def update(number: int) -> None:
        try:
            for nth in range(UPDATES // 4):
                if (nth + number) % 2:
                    with transaction.atomic():
                        Effect.objects.create(job_id=nth, note="stream")
                        ids.add(look_at_updates.delay("stream").pk)
                else:
                    Effect.objects.create(job_id=nth, note="stream")
                    ids.add(look_at_updates.delay("stream").pk)
        finally:
            connection.close()

    def count() -> None:
        try:
            with connection.cursor() as cursor:
                while not over.is_set():
                    cursor.execute(COUNTED, [look_at_updates.name])
                    counts.add(cursor.fetchone())
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:
        counting = pool.submit(count)
        for done in [pool.submit(update, number) for number in range(4)]:
            done.result(120)
        jobs = wait_for_end(ids)
        over.set()
        counting.result(10)

    assert max(job.result for job in jobs) == UPDATES
    assert len(jobs) == Job.objects.count() < UPDATES
    assert most_at_once((row.started_at, row.ended_at) for row in Interval.objects.all()) == 1
    # a second one, when a claim of a busy machine kept the row of the first for SETTLE_SECONDS
    assert max(waiting for waiting, _ in counts) <= 2
    assert max(active for _, active in counts) == 1
    wait_until(lambda: not UniqueKey.objects.exists(), what="the keys are let go")


def test_key_is_free_when_its_job_died_for_good(workers: Workers, gate: Gate):
    runner = workers.start()
    bound = hold_alone.using(max_attempts=1)
    job = bound.delay(str(gate))
    gate.wait_for(job)
    assert bound.delay(str(gate)).pk == job.pk
    for child in runner.children():
        child.send_signal(signal.SIGKILL)
    wait_for_state(job, "error")

    other = bound.delay(str(gate))
    assert other.pk != job.pk
    gate.open()
    wait_for_end([other.pk])


def test_key_is_kept_through_a_rescue(workers: Workers, gate: Gate):
    runner = workers.start()
    bound = hold_alone.using(max_attempts=3)
    job = bound.delay(str(gate))
    gate.wait_for(job)
    for child in runner.children():
        child.send_signal(signal.SIGKILL)
    gate.wait_for(job, attempt=2)

    assert bound.delay(str(gate)).pk == job.pk
    gate.open()
    wait_for_end([job.pk])
    wait_until(lambda: not UniqueKey.objects.exists(), what="the key is let go")


def test_stale_keys_are_pruned_by_the_maintenance(workers: Workers):
    UniqueKey.objects.create(key="stale", job_id=10**12, mode="until_executed")
    workers.start()

    wait_until(lambda: not UniqueKey.objects.exists(), what="the key is pruned")
