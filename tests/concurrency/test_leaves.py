"""No id ever stands in two leaves, and a Job is not saved."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from django_tenantqueue.exceptions import JobReadOnly
from django_tenantqueue.models import Job
from django_tenantqueue.operations import control
from tests.factories import make_job, make_jobs, make_queue, state_of
from tests.process.workers import wait_until


def rows_of(ids: list[int]) -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, state FROM tenantqueue_job WHERE id = ANY (%s)", [ids])
        return cursor.fetchall()


def test_saving_raises_when_the_job_was_loaded_and_has_finished_meanwhile(worker):
    job = make_job()
    worker.finish(worker.claim())

    job.priority = 1
    with pytest.raises(JobReadOnly, match=f"Job {job.pk} cannot be saved"):
        job.save()

    assert rows_of([job.pk]) == [(job.pk, "success")]


@pytest.mark.parametrize(
    "write",
    [
        lambda job: job.save(update_fields=["priority"]),
        lambda job: Job.objects.create(queue_id=job.queue_id, task="x"),
        lambda job: Job.objects.update_or_create({"priority": 1}, pk=job.pk),
        lambda job: job.delete(),
    ],
    ids=["update_fields", "create", "update_or_create", "delete"],
)
def test_writing_raises_when_it_goes_through_the_orm(write):
    job = make_job()

    with pytest.raises(JobReadOnly):
        write(job)

    assert rows_of([job.pk]) == [(job.pk, "ready")]


def test_each_job_is_in_one_leaf_when_finish_cancel_and_retry_race(worker_factory, threads):
    queue = make_queue(num_slots=1000)
    ids = make_jobs(queue, 40, max_attempts=30000)
    stop = threading.Event()
    seen: list[list[tuple[int, str]]] = []

    def run(worker):
        while not stop.is_set():
            worker.finish(worker.claim(10), "error")

    def cancel():
        while not stop.is_set():
            control.cancel(ids[::3])

    def retry():
        while not stop.is_set():
            control.retry(ids)

    def look():
        for _ in range(150):
            seen.append(rows_of(ids))

    running = [threads.start(run, worker_factory()) for _ in range(2)]
    running += [threads.start(cancel), threads.start(retry)]
    threads.start(look).result(60)
    stop.set()
    for thread in running:
        thread.result(20)

    for rows in (*seen, rows_of(ids)):
        assert sorted(job_id for job_id, _ in rows) == ids
    assert len({state for rows in seen for _, state in rows}) >= 3, "nothing has raced"


@pytest.mark.parametrize("change", [control.cancel, control.retry], ids=["cancel", "retry"])
def test_one_of_two_wins_when_the_same_change_is_made_twice_at_once(threads, change):
    ids = make_jobs(make_queue(), 20, state="ready" if change is control.cancel else "error")
    together = threading.Barrier(4)

    def both():
        together.wait(20)
        changed = change(ids)
        return changed[0] if isinstance(changed, tuple) else changed

    results = [thread.result(20) for thread in [threads.start(both) for _ in range(4)]]

    assert sorted(job_id for changed in results for job_id in changed) == ids
    assert sorted(job_id for job_id, _ in rows_of(ids)) == ids


def test_job_is_asked_to_stop_when_it_holds_a_slot(worker):
    job = make_job()
    worker.claim()

    assert control.cancel([job.pk]) == ([], [job.pk])
    assert state_of(job.pk) == "queued"


def test_job_has_one_row_when_it_is_looked_up_by_id_at_any_time(worker):
    job = make_job()
    assert Job.objects.get(pk=job.pk).state == "ready"

    worker.finish(worker.claim())

    assert Job.objects.get(pk=job.pk).state == "success"


def test_job_is_asked_to_stop_when_it_was_claimed_at_the_same_time(worker, threads, monkeypatch):
    tries: list[str] = []
    request_cancel = control.queries.request_cancel

    def counted(using: str, ids: list[int]) -> dict[int, bool]:
        tries.append(using)
        return request_cancel(using, ids)

    monkeypatch.setattr(control.queries, "request_cancel", counted)
    monkeypatch.setattr(control, "CLAIM_SECONDS", 20.0)
    job = make_job()
    with worker.open_claim() as jobs:
        assert [taken.id for taken in jobs] == [job.pk]
        cancelling = threads.start(control.cancel, [job.pk])
        wait_until(lambda: len(tries) > 2, what="it is tried again")
        assert not cancelling.done()

    assert cancelling.result(5) == ([], [job.pk])


def test_rows_are_locked_in_the_order_of_workers_when_running_jobs_are_cancelled(
    worker, threads, open_connection
):
    first, second = make_jobs(make_queue(num_slots=2), 2)
    worker.claim()
    holder = open_connection()
    # its row lies behind the other's now
    holder.execute("UPDATE tenantqueue_job_hot SET progress_done = 1 WHERE id = %s", [first])
    lock = "SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE"
    with holder.transaction():
        holder.execute(lock, [first])
        cancelling = threads.start(control.cancel, [first, second])
        wait_until(waits_for_a_lock, what="it waits for the first row")

        holder.execute(f"{lock} NOWAIT", [second])

    assert cancelling.result(5) == ([], [first, second])


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone()[0] > 0


def test_cancelling_ends_when_somebody_keeps_the_row_locked(open_connection, monkeypatch):
    monkeypatch.setattr(control, "CLAIM_SECONDS", 0.05)
    job, other = make_job(), make_job()
    holder = open_connection()
    with holder.transaction():
        holder.execute("SELECT FROM tenantqueue_job_hot WHERE id = %s FOR UPDATE", [job.pk])

        assert control.cancel([job.pk, other.pk, 0]) == ([other.pk], [])

    assert control.cancel([job.pk]) == ([job.pk], [])
