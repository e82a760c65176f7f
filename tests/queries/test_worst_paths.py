"""Statements that walk read no more on their worst path than what they visit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_tenantqueue.queries import claim as queries
from django_tenantqueue.queries.base import statement
from django_tenantqueue.queries.claim import ClaimRequest, Position
from tests.factories import make_jobs, make_queue


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


@pytest.mark.django_db
def test_last_step_of_a_circle_reads_nothing_behind_its_start():
    first = make_queue()
    for _ in range(4):
        make_jobs(make_queue(), 500)
    end = Position(lane=240, queue_id=first.pk, start_id=first.pk, wrapped=True)
    name, params = queries.lock_statement(ClaimRequest(1, 10, 0, position=end))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE tenantqueue_job_hot")
        cursor.execute("SET LOCAL enable_seqscan = off")
        text = statement(name).decode()
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", params)
        found = cursor.fetchone()[0]
    plan = json.loads(found) if isinstance(found, str) else found

    filtered = sum(
        node.get("Rows Removed by Filter", 0) * node["Actual Loops"]
        for node in nodes(plan[0]["Plan"])
    )

    assert filtered < 20
