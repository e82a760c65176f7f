"""Children of a supervisor that cannot be started."""

from __future__ import annotations

import os

import pytest

from django_tenantqueue.models import Worker
from django_tenantqueue.worker.config import WorkerConfig
from django_tenantqueue.worker.supervisor.children import Children, DatabaseOptions
from django_tenantqueue.worker.supervisor.lease import Lease

pytestmark = pytest.mark.django_db(transaction=True)


def test_no_row_stays_when_a_child_cannot_be_forked(monkeypatch, caplog):
    def fork() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(DatabaseOptions, "change_for_supervisor", lambda _: None)
    monkeypatch.setattr(os, "fork", fork)
    lease = Lease("default", "w")
    config = WorkerConfig(database="default", name="w")
    children = Children(config, lease, say=lambda text: None, in_child=lambda: None)

    children.start_due()

    assert not Worker.objects.exists()
    assert not lease._held
    assert "starting child 0 failed, retrying: Resource temp" in caplog.text
    assert 0 < children.seconds_to_next_start() <= 1.0
    lease.close()
