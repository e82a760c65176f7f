"""What maintenance asks of the schedules is answered by their indexes."""

from __future__ import annotations

import json

import pytest
from django.db import connection, transaction

from django_tenantqueue.contrib.schedules.models import Schedule, ScheduleQuerySet
from django_tenantqueue.queries.lists import read_in_order
from tests.plans import nodes

pytestmark = pytest.mark.django_db
DUE = 200
FILL = (
    "INSERT INTO tenantqueue_schedule (name, tenant, task, args, kwargs, queue, kind, expression, "
    "time_zone, tick_at, next_at, last_job_id) SELECT 'schedule-' || n, '', 'noop', '[]', '{}', "
    "'', 'cron', '* * * * *', '', moment, moment, n FROM generate_series(1, 20000) n, "
    f"LATERAL (SELECT now() + (n - {DUE}) * interval '1 minute' AS moment) m"
)


@pytest.fixture(params=["empty", "filled"])
def filled(request: pytest.FixtureRequest) -> None:
    """Fill the table, which was analysed before that, or after."""
    statements = ["ANALYZE tenantqueue_schedule", FILL]
    if request.param == "filled":
        statements.reverse()
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def check(rows: ScheduleQuerySet, found: int, *indexes: str) -> None:
    """Run a query: it uses these indexes, and reads no row that it does not return."""
    plan = json.loads(rows.explain(format="json", analyze=True))[0]["Plan"]
    assert plan["Actual Rows"] == found
    used = {node["Index Name"] for node in nodes(plan) if "Index Name" in node}
    assert used == set(indexes)
    assert not [node for node in nodes(plan) if node["Node Type"] == "Seq Scan"]
    assert not [node for node in nodes(plan) if node.get("Rows Removed by Filter")]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("most", "found"), [(100, 100), (1000, DUE)])
def test_due_schedules_are_locked_by_their_index(most: int, found: int) -> None:
    rows = Schedule.objects.due().select_for_update(no_key=True, skip_locked=True)

    with transaction.atomic(), read_in_order("default"):
        check(rows[:most], found, "tenantqueue_schedule_due", "tenantqueue_job_hot_pkey")


@pytest.mark.usefixtures("filled")
def test_next_schedule_is_the_first_entry_of_its_index() -> None:
    check(Schedule.objects.planned()[:1], 1, "tenantqueue_schedule_due")
