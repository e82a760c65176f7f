"""Signals tell receivers of a task, or of all, what becomes of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from django_tenantqueue import Unique, signals, task
from django_tenantqueue.exceptions import Cancelled, InvalidOption
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.testing import run_pending
from tests.factories import make_queue
from tests.testapp import tasks
from tests.testapp.models import Report

pytestmark = pytest.mark.django_db


@task(name="tests.signals.give_up")
def give_up() -> None:
    raise Cancelled("no more of this")


@contextmanager
def received(signal: signals.TaskSignal, sender: Any = None) -> Iterator[list[tuple[Any, Any]]]:
    """Yield what a receiver gets in the block: senders, and the other arguments."""
    seen: list[tuple[Any, Any]] = []

    def receive(sender: Any, signal: Any, **given: Any) -> None:
        seen.append((sender, given))

    signal.connect(receive, sender=sender)
    yield seen
    assert signal.disconnect(receive, sender=sender)


def test_signals_are_sent_when_a_job_runs():
    job = tasks.fail_until.delay(2)
    with (
        received(signals.job_started) as started,
        received(signals.job_retried) as retried,
        received(signals.job_finished) as finished,
    ):
        run_pending(scheduled=True)

    task, said = tasks.fail_until, {"task": tasks.fail_until.name, "job_id": job.pk}
    assert started == [(task, {**said, "attempt": number}) for number in (1, 2)]
    ((sender, given),) = retried
    error = given.pop("error")
    assert (sender, given) == (task, {**said, "attempt": 1})
    assert isinstance(error, Exception)
    assert finished == [(task, {**said, "state": "success", "error": None})]


def test_receiver_gets_the_error_of_a_job_that_has_failed():
    tasks.fail_until.using(max_attempts=1).delay(2)
    with received(signals.job_finished) as finished:
        (job,) = run_pending()

    ((_, given),) = finished
    assert given["state"] == "error"
    assert str(given["error"]) == job.last_error["message"]


def test_receiver_gets_no_error_of_a_job_that_was_cancelled():
    give_up.delay()
    with received(signals.job_finished) as finished:
        run_pending()

    assert [(given["state"], given["error"]) for _, given in finished] == [("cancelled", None)]


def test_receiver_gets_the_jobs_of_the_task_that_it_names():
    with received(signals.job_finished, tasks.noop) as seen:
        job, _other = tasks.noop.delay(), tasks.echo.delay(1)
        run_pending()

    assert [(sender, given["job_id"]) for sender, given in seen] == [(tasks.noop, job.pk)]


@pytest.mark.parametrize("sender", ["tests.testapp.tasks.noop", print, Report])
def test_sender_that_would_never_be_called_is_rejected(sender):
    with pytest.raises(InvalidOption, match="must be a task made by @task, as in sender=report"):
        signals.job_started.connect(lambda **_: None, sender=sender)


def test_options_of_a_task_are_no_sender():
    with pytest.raises(InvalidOption, match="must be a task"):
        signals.job_started.connect(lambda **_: None, sender=tasks.noop.using(queue="q"))


# enqueued


def test_signal_is_sent_when_a_job_is_enqueued():
    with received(signals.job_enqueued) as seen:
        job = tasks.echo.using(tenant="acme", queue="mail").delay(1)

    said = {"task": tasks.echo.name, "job_id": job.pk, "tenant": "acme", "queue": "mail"}
    assert seen == [(tasks.echo, said)]


def test_signal_is_sent_in_the_transaction_of_the_caller():
    found = []

    def receive(job_id: int, **_: Any) -> None:
        found.append(Job.objects.find(job_id))

    signals.job_enqueued.connect(receive)
    try:
        with transaction.atomic():
            job = tasks.noop.delay()
            transaction.set_rollback(True)
    finally:
        signals.job_enqueued.disconnect(receive)

    assert found == [job]
    assert Job.objects.find(job.pk) is None


def test_job_is_enqueued_when_a_receiver_fails(caplog):
    def receive(**_: Any) -> None:
        raise ValueError("no")

    signals.job_enqueued.connect(receive)
    try:
        job = tasks.noop.delay()
    finally:
        signals.job_enqueued.disconnect(receive)

    assert Job.objects.find(job.pk) == job
    assert "receive" in caplog.text


def test_job_of_a_method_has_no_sender_and_a_name():
    report = Report.objects.create(title="x")
    with received(signals.job_enqueued) as seen, received(signals.job_finished) as finished:
        job = report.delay.execute("pdf")
        run_pending()

    assert [(sender, given["task"]) for sender, given in seen] == [(None, job.task)]
    assert [(sender, given["task"]) for sender, given in finished] == [(None, job.task)]


@pytest.mark.parametrize("session", [None, "s"])
def test_signal_is_sent_for_each_job_of_a_bulk_call(session):
    with (
        received(signals.job_enqueued, tasks.echo) as seen,
        received(signals.job_enqueued, tasks.noop) as others,
    ):
        ids = tasks.echo.using(session=session).enqueue_many([1, 2, 3])

    assert [given["job_id"] for _, given in seen] == ids
    assert others == []


def test_signal_is_not_sent_for_a_duplicate():
    unique = Unique("until_executed", key="k")
    with received(signals.job_enqueued) as seen:
        first = tasks.echo.using(unique=unique).delay(1)
        tasks.echo.using(unique=unique).delay(2)
        tasks.echo.using(unique=unique).enqueue_many([3])
        (second, _) = tasks.echo.using(unique=Unique("until_executed", key="l")).enqueue_many(
            [4, 5]
        )

    assert [given["job_id"] for _, given in seen] == [first.pk, second]


def test_signal_is_not_sent_for_details_of_a_monitor():
    make_queue()
    with received(signals.job_enqueued) as seen:
        ConcurrentJobMonitor.objects.start("m", [tasks.echo.call(1)], parallel=1)

    assert seen == []


def test_receivers_of_other_tasks_cost_a_bulk_call_nothing(monkeypatch):
    def send(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody listens")

    with received(signals.job_enqueued, tasks.noop):
        monkeypatch.setattr(signals.job_enqueued, "send_robust", send)
        assert len(tasks.echo.enqueue_many([1, 2])) == 2
