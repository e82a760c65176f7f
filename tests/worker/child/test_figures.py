"""What a worker process counts of its jobs, and adds to the minute figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import override_settings

from django_tenantqueue.execution.outcome import Outcome
from django_tenantqueue.models import Figure
from django_tenantqueue.queries import figures
from django_tenantqueue.queries.figures import ALL, Counts, add_figures, with_totals
from django_tenantqueue.queries.finish import Finished
from django_tenantqueue.worker.connection import connect
from tests.concurrency.loops import FakeLoop, turned_loop
from tests.factories import make_jobs, make_queue

pytestmark = pytest.mark.django_db(transaction=True)
NOOP = "tests.testapp.tasks.noop"


@pytest.fixture
def loop() -> Iterator[FakeLoop]:
    with turned_loop() as made:
        yield made


def store(loop: FakeLoop) -> None:
    loop.turn_until(lambda: loop.claim_loop.completions.is_empty and not loop.claim_loop._ended)
    loop.claim_loop.heartbeat.hurry()
    loop.claim_loop.run_once()


def counts_of(queue_id: int, name: str, error: str = "") -> dict[str, int]:
    columns = ("started", "succeeded", "failed", "retried")
    rows = Figure.objects.filter(queue_id=queue_id, task=name, error=error).values(*columns)
    return {column: sum(row[column] for row in rows) for column in columns}


def test_runs_are_counted_for_queue_task_and_all_when_a_heartbeat_is_written(loop):
    queue = make_queue(num_slots=10)
    make_jobs(queue, 3)
    first, second, third = loop.take(3)
    loop.end(first)
    loop.end(second)
    loop.fail(third, json.dumps({"error": {"class": "ValueError"}}))

    store(loop)

    expected = {"started": 3, "succeeded": 2, "failed": 0, "retried": 1}
    assert counts_of(queue.pk, NOOP) == expected
    assert counts_of(ALL, NOOP) == expected
    assert counts_of(ALL, "") == expected


def test_start_is_counted_once_while_the_job_runs(loop):
    queue = make_queue()
    make_jobs(queue, 1)
    (running,) = loop.take(1)

    store(loop)
    assert counts_of(queue.pk, NOOP) == {"started": 1, "succeeded": 0, "failed": 0, "retried": 0}

    store(loop)
    loop.end(running)
    store(loop)

    assert counts_of(queue.pk, NOOP) == {"started": 1, "succeeded": 1, "failed": 0, "retried": 0}


def test_no_start_is_counted_when_a_claim_is_given_back_or_its_job_has_expired(loop):
    queue = make_queue(num_slots=10)
    make_jobs(queue, 2)
    unknown, expired = loop.take(2)
    loop.claim_loop.report(unknown, Outcome(give_back=60.0))
    ended = Finished(expired.id, expired._claimed.claim_seq, "cancelled", None)
    loop.claim_loop.report(expired, Outcome(finished=ended))

    store(loop)

    assert counts_of(queue.pk, NOOP)["started"] == 0
    assert Figure.objects.filter(task=NOOP).values_list("cancelled", flat=True)[0] == 1


def test_failure_is_counted_by_its_class_with_its_job_when_it_is_retried(loop):
    queue = make_queue()
    make_jobs(queue, 1)
    (running,) = loop.take(1)
    loop.fail(running, json.dumps({"error": {"class": "app.Broken"}}))

    store(loop)

    row = Figure.objects.get(queue_id=queue.pk, error="app.Broken")
    assert (row.retried, row.failed, row.last_job_id) == (1, 0, running.id)


def test_wait_is_counted_from_when_the_job_could_run_when_it_starts_late(loop):
    queue = make_queue()
    make_jobs(queue, 1, run_at=datetime.now(UTC) - timedelta(seconds=100))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenantqueue_job SET created_at = now() - interval '100 seconds'")
    loop.end(*loop.take(1))

    store(loop)

    row = Figure.objects.get(queue_id=ALL, task="")
    assert 100 <= row.wait_seconds < 160
    assert sum(row.waits) == 1
    assert row.waits[-1] == 1


def test_counts_are_added_when_two_processes_have_the_same_minute():
    key = (ALL, "", "")
    short = Counts(started=1, succeeded=2, run_seconds=0.5, runs=[1], waits=[0, 0, 4])
    long = Counts(started=10, succeeded=20, run_seconds=1.5, runs=[1, 2, 3], waits=[])
    other = connect("default", "test")

    # across the end of a minute there are two rows
    add_figures("default", {key: short})
    add_figures(other, {key: long})
    other.close()

    rows = list(Figure.objects.all())
    total = Counts()
    for row in rows:
        total.add(Counts(started=row.started, runs=list(row.runs), waits=list(row.waits)))
    assert (total.started, total.runs, total.waits) == (11, [2, 2, 3], [0, 0, 4])
    assert sum(row.run_seconds for row in rows) == 2.0


def test_counts_are_kept_for_the_next_heartbeat_when_a_row_is_locked(loop):
    queue = make_queue()
    make_jobs(queue, 2)
    first, second = loop.take(2)
    loop.end(first)
    store(loop)
    loop.end(second)
    with connect("default", "test") as other:
        other.execute("BEGIN")
        other.execute("LOCK TABLE tenantqueue_figure IN EXCLUSIVE MODE")
        store(loop)
        assert counts_of(queue.pk, NOOP)["succeeded"] == 1
        other.execute("ROLLBACK")

    store(loop)

    assert counts_of(queue.pk, NOOP)["succeeded"] == 2


def test_jobs_go_on_and_figures_are_dropped_when_they_cannot_be_stored(loop):
    make_jobs(make_queue(), 2)
    first, second = loop.take(2)
    loop.end(first)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_figure RENAME TO tenantqueue_figure_away")
    try:
        store(loop)
        loop.end(second)
        store(loop)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tenantqueue_figure_away RENAME TO tenantqueue_figure")

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM tenantqueue_job WHERE state = 'success'")
        assert cursor.fetchone() == (2,)
    store(loop)
    assert not Figure.objects.exists()


def test_the_last_counts_are_stored_when_the_process_ends(loop):
    queue = make_queue()
    make_jobs(queue, 1)
    loop.end(*loop.take(1))
    loop.turn_until(lambda: loop.claim_loop.completions.is_empty and not loop.claim_loop._ended)

    loop.claim_loop.close()

    assert counts_of(queue.pk, NOOP)["succeeded"] == 1


@override_settings(TENANTQUEUE={"FIGURES": False})
def test_nothing_is_stored_when_figures_are_off(loop):
    make_jobs(make_queue(), 1)
    loop.end(*loop.take(1))

    store(loop)

    assert not Figure.objects.exists()


def test_rarest_tasks_count_only_in_the_total_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(figures, "MOST_ROWS", 2)
    counted = {(1, f"task-{n}", ""): Counts(succeeded=n) for n in range(1, 6)}

    found = with_totals(counted)

    assert found[ALL, "", ""].succeeded == 15
    assert {key for key in found if key[0] == 1} == {(1, "task-5", ""), (1, "task-4", "")}


def test_names_are_cut_when_an_index_could_not_hold_them(loop):
    queue = make_queue()
    make_jobs(queue, 1, task="n" * 5000)
    loop.end(*loop.take(1))

    store(loop)

    assert Figure.objects.get(queue_id=queue.pk).task == "n" * figures.LONGEST


@pytest.mark.parametrize(
    ("extra", "error"),
    [
        ("{}", "?"),
        ("no JSON", "?"),
        ('{"error": 5}', "?"),
        ('{"error": {"class": 5}}', "?"),
        ('{"error": {"class": ""}}', "?"),
        (json.dumps({"error": {"class": "a\x00b\ud800"}}), None),  # the server refuses it
    ],
)
def test_failure_is_counted_when_its_class_cannot_be_read_or_stored(loop, extra, error):
    queue = make_queue()
    make_jobs(queue, 1)
    (running,) = loop.take(1)
    loop.fail(running, extra)

    store(loop)

    assert counts_of(queue.pk, NOOP)["retried"] == 1
    assert error is None or counts_of(queue.pk, NOOP, error)["retried"] == 1
