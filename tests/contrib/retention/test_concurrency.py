"""Pruning beside operators."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from django_tenantqueue.contrib.retention.control import make_retention_rule
from django_tenantqueue.contrib.retention.pruning import Pruner
from django_tenantqueue.models import Job
from tests.factories import make_job, make_queue

pytestmark = pytest.mark.django_db(transaction=True)


def test_pruning_passes_over_a_job_that_an_operator_is_bringing_back(open_connection):
    make_retention_rule(keep_days=1)
    queue = make_queue()
    held = make_job(queue, state="error")
    make_job(queue, state="error")
    later = datetime.now(UTC) + timedelta(days=2)
    other = open_connection()
    pruner = Pruner()

    with other.transaction():
        other.execute("SELECT FROM tenantqueue_job_history WHERE id = %s FOR UPDATE", [held.pk])
        pruner.begin("default", later)
        while pruner.place is not None:
            pruner.step("default", later)

    assert set(Job.objects.values_list("pk", flat=True)) == {held.pk}
    assert pruner.removed["keep_days"] == 1
