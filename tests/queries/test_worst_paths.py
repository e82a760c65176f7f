"""Statements that walk read no more on their worst path than what they visit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from django_tenantqueue.queries import claim as queries
from django_tenantqueue.queries.base import statement
from django_tenantqueue.queries.claim import ClaimRequest
from tests.factories import make_jobs, make_queue
from tests.plans import nodes


def filtered(params: dict[str, Any]) -> int:
    """Return how many index entries lock_queues.sql reads and drops."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tenantqueue_job_hot")
        cursor.execute("SET LOCAL enable_seqscan = off")
        text = statement("lock_queues").decode()
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", params)
        found = cursor.fetchone()[0]
    plan = json.loads(found) if isinstance(found, str) else found
    return sum(
        node.get("Rows Removed by Filter", 0) * node["Actual Loops"]
        for node in nodes(plan[0]["Plan"])
    )


@pytest.mark.django_db
def test_steps_pass_over_long_backlogs_without_reading_them():
    for _ in range(4):
        make_jobs(make_queue(), 500)

    assert filtered(queries.lock_params(ClaimRequest(1, 10, 0))) < 20


@pytest.mark.django_db
def test_place_that_is_known_is_found_without_reading_others():
    first = make_queue()
    for _ in range(4):
        make_jobs(make_queue(), 500)
    request = ClaimRequest(1, 10, 0, known={(240, first.pk, 240): 0}, most_steps=0)

    assert filtered(queries.lock_params(request)) < 20
