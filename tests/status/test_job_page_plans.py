"""Each statement of a list uses the index its comment names, and reads a bounded part of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from django_tenantqueue.queries import lists
from django_tenantqueue.queries.base import statement
from django_tenantqueue.states import State

pytestmark = pytest.mark.django_db

FILL = """
    CREATE TABLE tenantqueue_job_history_2020m01 PARTITION OF tenantqueue_job_history
        (CONSTRAINT tenantqueue_job_history_2020m01_pkey PRIMARY KEY (id))
        FOR VALUES FROM ('2020-01-01 00:00:00+00') TO ('2020-02-01 00:00:00+00');
    INSERT INTO tenantqueue_job_history (
        id, created_at, finished_at, queue_id, lane, priority, final, state, name, source_type,
        source_method, attempt, worker_id, queued_at
    )
    SELECT
        i, t, t, 1 + i %% 100, 240, 240, true,
        CASE WHEN i %% 20 = 0 THEN 'error' WHEN i %% 20 = 1 THEN 'cancelled' ELSE 'success' END,
        'app.task_' || i %% 10, 'task', 'x', 1, 1, t
    FROM generate_series(1, 40000) i
    CROSS JOIN LATERAL (
        SELECT CASE WHEN i <= 20000 THEN timestamptz '2020-01-15 00:00:00+00' ELSE now() END AS t
    ) moment;
    INSERT INTO tenantqueue_job_hot (
        id, created_at, run_at, queue_id, lane, priority, state, name, source_type, source_method,
        worker_id, queued_at
    )
    SELECT
        40000 + i, now(), now() + i * interval '1 s', 1 + i %% 100, p, p,
        CASE WHEN i %% 50 = 0 THEN 'scheduled' WHEN i %% 500 = 1 THEN 'running' ELSE 'created' END,
        'app.task_' || i %% 10, 'task', 'x',
        CASE WHEN i %% 50 <> 0 AND i %% 500 = 1 THEN 1 END, now()
    FROM generate_series(1, 40000) i
    CROSS JOIN LATERAL (SELECT 100 + 20 * (i / 100 %% 5) AS p) chosen;
"""

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("list_unfinished_jobs", "tenantqueue_job_hot_pkey", {}),
    ("list_unfinished_jobs", "tenantqueue_job_hot_pkey", {"name": "app.task_3"}),
    ("list_active_jobs", "tenantqueue_job_slots", {"queues": [2]}),
    ("list_scheduled_jobs", "tenantqueue_job_due", {}),
    ("list_ready_of_queues", "tenantqueue_job_ready", {"queues": [2, 7]}),
    ("list_history_jobs", "_pkey", {}),
    ("list_history_jobs", "_pkey", {"states": ["success"], "queues": [2]}),
    ("list_history_of_queues", "_queue_id_id_idx", {"queues": [2, 7]}),
    ("list_history_of_name", "_name_id_idx", {"name": "app.task_3"}),
    ("list_history_in_state", "_state_id_idx", {"state": "error"}),
]


@pytest.fixture
def filled(db: None) -> None:
    """Fill hot leaf and history; a tenth of the unfinished rows is dead."""
    with connection.cursor() as cursor:
        cursor.execute(FILL, [])
        cursor.execute("UPDATE tenantqueue_job_hot SET attempt = 1 WHERE id % 10 = 0", None)
        cursor.execute("ANALYZE tenantqueue_job")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a plan and all plans below it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def explain(file: str, **params: Any) -> dict[str, Any]:
    """Return the plan of a statement as the lists send it."""
    values: dict[str, Any] = {
        "before": lists.NEWEST,
        "page": 101,
        "most": 200,
        "states": None,
        "queues": None,
        "name": None,
        "state": None,
        "text": None,
        **params,
    }
    with lists.read_in_order("default"), connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + statement(file).decode(), values
        )
        (plan,) = cursor.fetchone()
    plans = json.loads(plan) if isinstance(plan, str) else plan
    found: dict[str, Any] = plans[0]["Plan"]
    return found


@pytest.mark.usefixtures("filled")
def test_statements_read_a_bounded_part_of_the_index_that_they_name() -> None:
    for name, index, params in CASES:
        plan = explain(name, **params)
        scans = [
            node
            for node in nodes(plan)
            if node.get("Relation Name", "").startswith("tenantqueue_job")
            and node["Actual Rows"] * node["Actual Loops"] > 0
        ]
        assert scans, name
        for scan in scans:
            assert scan["Node Type"] in ("Index Scan", "Index Only Scan"), (name, scan)
            assert scan["Index Name"].endswith(index), (name, scan["Index Name"])
            assert scan["Actual Rows"] <= 201, (name, scan)
        buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        assert buffers < 3500, (name, buffers)


@pytest.mark.usefixtures("filled")
def test_a_page_of_the_history_costs_the_same_at_any_depth() -> None:
    for name, params in (
        ("list_history_jobs", {}),
        ("list_history_of_queues", {"queues": [2]}),
        ("list_history_of_name", {"name": "app.task_3"}),
        ("list_history_in_state", {"state": State.ERROR.value}),
    ):
        costs = []
        for before in (40_001, 10_000):
            plan = explain(name, before=before, **params)
            costs.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        assert max(costs) < 1000, (name, costs)
