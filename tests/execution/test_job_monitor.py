"""What a running job is told of its monitor, and its callback of the details."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_tenantqueue.execution import job_monitor
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.execution.job_monitor import monitor_of, summary_of
from django_tenantqueue.models import ConcurrentJobMonitor, Job
from django_tenantqueue.operations.monitor_control import cancel_monitor
from django_tenantqueue.queries.claim import ClaimedJob
from django_tenantqueue.testing import run_commit_hooks, run_pending
from tests.factories import make_job
from tests.testapp.tasks import async_tell_monitor, fail, noop, tell_monitor

pytestmark = pytest.mark.django_db


def start(details: list[Any], **options: Any) -> ConcurrentJobMonitor:
    monitor = ConcurrentJobMonitor.objects.start("import", details, parallel=3, **options)
    run_commit_hooks("default")
    return monitor


def result_of(job_id: int) -> Any:
    return Job.objects.get(pk=job_id).result


@pytest.mark.parametrize("callback", [tell_monitor, async_tell_monitor])
def test_callback_is_told_its_monitor_and_a_summary(callback: Any, monkeypatch) -> None:
    monkeypatch.setattr(job_monitor, "BATCH", 2)
    failing = [fail.using(max_attempts=1).call() for _ in range(5)]
    monitor = start([*failing, noop.call(), noop.call()], on_end=callback.call())

    run_pending()

    told = result_of(monitor.anchor_id)
    assert told["monitor"] == [monitor.pk, f"import #{monitor.pk}", True]
    assert told["counts"] == [7, 2, 5, 0]
    assert told["seconds"] > 0
    failed = monitor.details().filter(state="error").order_by("-finished_at", "-pk")
    assert told["failed"] == list(failed.values_list("pk", flat=True))


@pytest.mark.parametrize("detail", [tell_monitor, async_tell_monitor])
def test_detail_is_told_its_monitor_and_no_summary(detail: Any) -> None:
    monitor = start([detail.call()])

    run_pending()

    (job_id,) = monitor.details().values_list("pk", flat=True)
    told = result_of(job_id)
    assert told["monitor"] == [monitor.pk, f"import #{monitor.pk}", False]
    assert told["counts"] is None


def test_job_without_a_monitor_is_told_nothing() -> None:
    job = tell_monitor.delay()

    run_pending()

    nothing = {"monitor": None, "counts": None, "seconds": None, "failed": []}
    assert result_of(job.pk) == nothing


def test_callback_without_details_is_told_zeros() -> None:
    monitor = start([], on_end=tell_monitor.call())

    run_pending()

    told = result_of(monitor.anchor_id)
    assert told["counts"] == [0, 0, 0, 0]
    assert told["seconds"] is None


def test_summary_has_no_end_while_details_are_left() -> None:
    monitor = start([noop.call(), noop.call()])

    summary = summary_of(monitor.pk)

    assert summary is not None
    assert (summary.total, summary.succeeded, summary.ended_at) == (2, 0, None)


def test_summary_counts_cancelled_details() -> None:
    monitor = start([noop.call(), noop.call()])
    cancel_monitor(monitor.pk)

    summary = summary_of(monitor.pk)

    assert summary is not None
    assert (summary.total, summary.succeeded, summary.cancelled) == (2, 0, 2)


def test_eager_job_reads_nothing(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert monitor_of(-1) is None


def test_monitor_is_read_once_for_each_run(claimed_job: Callable[..., ClaimedJob]) -> None:
    job = make_job()
    running = RunningJob(claimed_job(id=job.pk))
    assert running.monitor is None
    monitor = start([noop.call()])
    Job.objects.filter(pk=job.pk).update(monitor_id=monitor.pk)

    assert running.monitor is None
    assert running.summary is None
