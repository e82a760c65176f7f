"""Retention rules are applied by real workers, and when the leader is killed meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.models import Duty, Job
from django_tenantqueue.operations import history
from tests.factories import make_jobs
from tests.process.workers import Workers, make_queue, wait_until
from tests.testapp.tasks import noop

OLD = 12_000


@pytest.fixture
def ended_at(transactional_db: None, workers: Workers) -> Iterator[datetime]:
    """Yield a moment two days ago, whose month has a partition meanwhile."""
    moment = timezone.now() - timedelta(days=2)
    month = moment.date().replace(day=1)
    leaf = history.Leaf(history.leaf_name(month), month)
    made = history.make_leaf("default", month)
    yield moment
    if made:
        workers.destroy()
        history.drop_leaf("default", leaf)


@pytest.mark.heavy
def test_old_jobs_go_and_others_stay_when_the_leader_is_killed(
    workers: Workers, ended_at: datetime
) -> None:
    ours, theirs = make_queue("acme"), make_queue("zebra")
    columns = {"state": "success", "finished_at": ended_at}
    for _ in range(OLD // 1000):  # of both tenants on each page
        make_jobs(ours, 1000, **columns)
        make_jobs(theirs, 100, **columns)
    make_retention_rule(tenant="acme", keep_days=1)
    old = Job.objects.finished().filter(queue=ours, finished_at__lte=ended_at)

    first = workers.start("--threads=2")
    ids = [noop.using(tenant="acme").delay().pk for _ in range(50)]
    wait_until(lambda: old.count() < OLD, what="the first jobs are deleted")
    first.send_all(signal.SIGKILL)
    left = old.count()
    workers.start("--threads=2")
    ids += [noop.using(tenant="zebra").delay().pk for _ in range(50)]

    wait_until(lambda: not old.exists(), what="all old jobs are deleted")
    wait_until(lambda: not Job.objects.unfinished().exists(), what="all jobs have ended")
    assert left > 0
    assert Job.objects.filter(queue=theirs, finished_at=ended_at).count() == OLD // 10
    assert Job.objects.filter(pk__in=ids, state="success").count() == 100
    wait_until(lambda: Duty.objects.filter(name="prune_history").exists(), what="the duty is shown")
