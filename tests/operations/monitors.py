"""A monitor with details that do nothing, and what has become of them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from django_tenantqueue.models import (
    ConcurrentJobMonitor,
    Job,
)
from django_tenantqueue.queries.finish import return_jobs
from django_tenantqueue.queries.monitors import OpenMonitor, find_open_monitors
from django_tenantqueue.testing import TEST_WORKER, run_commit_hooks, run_pending
from tests.testapp.tasks import noop


def start(details: Any = None, **options: Any) -> ConcurrentJobMonitor:
    """Start a monitor, by default of ten noops, and feed it."""
    details = [noop.call() for _ in range(10)] if details is None else details
    monitor = ConcurrentJobMonitor.objects.start("work", details, **{"parallel": 3, **options})
    run_commit_hooks("default")
    return monitor


def states(monitor: ConcurrentJobMonitor) -> list[str]:
    run_commit_hooks("default")
    return list(monitor.details().order_by("pk").values_list("state", flat=True))


def run_some(most: int) -> None:
    """Run `most` jobs, and give back the one more that is claimed to see whether it ends."""
    with pytest.raises(RuntimeError, match="there are still more"):
        run_pending(limit=most)
    claims = Job.objects.active().values_list("pk", "claim_seq")
    return_jobs(connection.connection, TEST_WORKER, list(claims))


def anchor_of(monitor: ConcurrentJobMonitor) -> Job:
    return Job.objects.get(pk=monitor.anchor_id)


def find_open(*, by_tenant: bool = False) -> list[OpenMonitor]:
    """Return what the duty sees."""
    return find_open_monitors("default", after=0, most=100, by_tenant=by_tenant)
