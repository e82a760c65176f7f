"""Attempts that jobs of dead workers have lost are counted in the minute figures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import override_settings

from django_tenantqueue.models import Figure, Job
from django_tenantqueue.operations.rescue import DeathReport, rescue_worker
from django_tenantqueue.queries.figures import ALL
from django_tenantqueue.stored_error import HARD_TIME_LIMIT_EXCEEDED, WORKER_DIED
from tests.factories import FakeWorker, make_jobs, make_queue, state_of

pytestmark = pytest.mark.django_db(transaction=True)
NOOP = "tests.testapp.tasks.noop"


@pytest.fixture
def worker() -> Iterator[FakeWorker]:
    made = FakeWorker()
    yield made
    made.close()


def counted(queue_id: int, name: str = NOOP, error: str = "") -> dict[str, int]:
    """Return the counts of a key that are not zero."""
    columns = ("started", "succeeded", "failed", "retried", "cancelled")
    rows = Figure.objects.filter(queue_id=queue_id, task=name, error=error).values(*columns)
    sums = {column: sum(row[column] for row in rows) for column in columns}
    return {column: count for column, count in sums.items() if count}


def test_lost_attempts_are_counted_by_what_became_of_the_jobs(worker):
    queue = make_queue()
    spent, _ = make_jobs(queue, 1, max_attempts=1), make_jobs(queue, 2)
    assert len(worker.claim_some()) == 3

    rescue_worker("default", worker.id, DeathReport("it died"))

    expected = {"failed": 1, "retried": 2}
    assert counted(queue.pk) == counted(ALL) == counted(ALL, "") == expected
    assert counted(queue.pk, NOOP, WORKER_DIED) == counted(ALL, NOOP, WORKER_DIED) == expected
    assert state_of(spent[0]) == "error"


def test_class_is_that_of_the_stored_error_when_a_run_was_killed(worker):
    queue = make_queue()
    (job_id,) = make_jobs(queue, 1)
    worker.claim_some()
    death = DeathReport("too long", culprit=job_id, error=HARD_TIME_LIMIT_EXCEEDED)

    rescue_worker("default", worker.id, death)

    (error,) = Job.objects.get(pk=job_id).errors
    assert counted(queue.pk, NOOP, error["class"]) == {"retried": 1}
    rows = Figure.objects.filter(error=error["class"])
    assert set(rows.values_list("last_job_id", flat=True)) == {job_id}


def test_cancelled_job_counts_as_cancelled_and_not_as_failed(worker):
    queue = make_queue()
    make_jobs(queue, 1, max_attempts=1)
    worker.claim_some()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tenantqueue_job_hot SET cancel_requested_at = now()")

    rescue_worker("default", worker.id, DeathReport("it died"))

    assert counted(queue.pk) == {"cancelled": 1}
    assert not Figure.objects.exclude(error="").exists()


def test_nothing_is_counted_when_the_jobs_lose_no_attempt(worker):
    make_jobs(make_queue(), 1)
    worker.claim_some()

    rescue_worker("default", worker.id, DeathReport("it was stopped", blameless=True))

    assert not Figure.objects.exists()


@override_settings(TENANTQUEUE={"FIGURES": False})
def test_nothing_is_counted_when_figures_are_off(worker):
    make_jobs(make_queue(), 1)
    worker.claim_some()

    rescue_worker("default", worker.id, DeathReport("it died"))

    assert not Figure.objects.exists()


def test_jobs_are_rescued_and_the_error_is_logged_when_figures_cannot_be_stored(worker, caplog):
    (job_id,) = make_jobs(make_queue(), 1)
    worker.claim_some()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_figure RENAME TO tenantqueue_figure_away")
    try:
        rescued = rescue_worker("default", worker.id, DeathReport("it died"))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tenantqueue_figure_away RENAME TO tenantqueue_figure")

    assert rescued.retried == [job_id]
    assert state_of(job_id) == "ready"
    assert "counting the lost attempts of worker" in caplog.text


def test_job_that_ends_with_its_worker_is_logged_as_an_error(worker, caplog):
    queue = make_queue()
    (last,) = make_jobs(queue, 1, max_attempts=1)
    (again,) = make_jobs(queue, 1, max_attempts=2)
    worker.claim_some()

    rescue_worker("default", worker.id, DeathReport("it was killed"))

    (error,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (error.job, error.task, error.outcome) == (last, "tests.testapp.tasks.noop", "error")
    assert error.getMessage() == (
        f"job {last} (tests.testapp.tasks.noop) ended in error because its worker died: "
        "it was killed"
    )
    assert state_of(again) == "ready"
