"""Statements about many rows read each of them a few times, whatever ANALYZE saw.

An analysis of an empty table leaves the planner with the belief that any list of ids finds one row.
A join may then compare each id with each row. Such a plan is fast with ten ids, and hangs with
twenty thousand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import pytest_django
from django.db import connections
from psycopg import sql

from django_tenantqueue.queries.base import array, numbered
from django_tenantqueue.worker.connection import connect
from tests.plans import nodes
from tests.queries.params import UNIQUE_JOB

MANY = 1000
MOST_ROWS = 60 * MANY
"""Rows that the nodes of a plan may handle together. A join of all with all handles MANY * MANY."""
WORKER = 7
TABLES = (
    "tenantqueue_job, tenantqueue_tenantqueue, tenantqueue_uniquekey, tenantqueue_session, "
    "tenantqueue_concurrentjobmonitor, tenantqueue_monitorpace, tenantqueue_taskcontrol, "
    "tenantqueue_worker, tenantqueue_queuerate"
)
LEFT_EMPTY = ("tenantqueue_job_hot", "tenantqueue_job_history_default", "tenantqueue_uniquekey")
"""Tables that have pages, and are analysed when all of their rows are gone."""
IDS = list(range(1, MANY + 1))
MONTH = datetime(2001, 2, 1, tzinfo=UTC)

Raw = psycopg.Connection[Any]


@dataclass(frozen=True)
class Many:
    """How a statement is tried: its parameters, and the jobs that it finds."""

    params: dict[str, Any]
    jobs: dict[str, str]
    """Columns and their SQL expressions. `n` counts the jobs from 1."""
    before: tuple[str, ...] = ()
    """Statements that run first."""


READY = {"state": "'ready'"}
CLAIMED = {
    "state": "'queued'",
    "worker_id": str(WORKER),
    "claim_seq": "1",
    "attempt": "1",
    "queued_at": "now()",
}
ENDED = {
    "state": "'error'",
    "final": "true",
    "finished_at": f"'{MONTH.isoformat()}'::timestamptz + interval '1 day'",
}
CLAIMS = {"worker": WORKER, "ids": array(IDS), "seqs": array(1 for _ in IDS)}
DEATHS = {
    "worker": WORKER,
    "ids": array(IDS),
    "error": '{"message": "died"}',
    "crashed": True,
    "max_errors": 10,
}
ENDS = {
    **CLAIMS,
    "states": array("success" for _ in IDS),
    "ages": array(0.1 for _ in IDS),
    "results": array("1" for _ in IDS),
    "result_refs": array("NULL" for _ in IDS),
    "extras": array("NULL" for _ in IDS),
    "max_errors": 10,
}
QUEUES = (
    (
        "INSERT INTO tenantqueue_tenantqueue (id, tenant, name, num_slots, created_at) "
        "OVERRIDING SYSTEM VALUE VALUES (1, 't', 'q', NULL, now()), (2, 't', 'r', NULL, now())"
    ),
)


def monitor(parallel: int, priority: int = 240) -> tuple[str, ...]:
    return (
        (
            "INSERT INTO tenantqueue_concurrentjobmonitor (id, tenant, name, parallel, "
            "interval_seconds, priority, paused, anchor_id, created_at) "
            "OVERRIDING SYSTEM VALUE VALUES "
            f"(5, 't', 'm', {parallel}, 0, {priority}, false, {MANY * 9}, now())"
        ),
    )


def user_limit(slots: int) -> tuple[str, ...]:
    return (
        (
            "INSERT INTO tenantqueue_session (kind, tenant, key, gate_key, num_slots, created_at) "
            f"VALUES ('limit_user', 't', 'u', 't/u', {slots}, now())"
        ),
    )


def control(slots: int, *, paused: bool = False) -> tuple[str, ...]:
    return (
        (
            "INSERT INTO tenantqueue_taskcontrol (task, num_slots, paused, created_at) "
            f"VALUES ('noop', {slots}, {paused}, now())"
        ),
    )


WORKERS = (
    (
        "INSERT INTO tenantqueue_worker (id, name, host, pid, supervisor_pid, version, started_at, "
        "heartbeat_at, queues, exclude_queues, tenants, threads, async_slots, draining, leased) "
        f"OVERRIDING SYSTEM VALUE VALUES ({WORKER}, 'w', 'h', 1, 1, '0', now(), now(), '{{}}', "
        "'{}', '{}', 8, 9, false, false)"
    ),
)
EXCLUSIVE_INSIDE = (
    (
        "INSERT INTO tenantqueue_job_hot (id, queue_id, lane, priority, task, source_type, "
        f"source_method, state, exclusive_key) SELECT {MANY} + n, 1, 240, 240, 'noop', 'task', "
        f"'noop', 'ready', 't/' || n FROM generate_series(1, {MANY}) n"
    ),
)
KEYS = (
    (
        "INSERT INTO tenantqueue_uniquekey (key, job_id, mode, expires_at) SELECT 'key-' || n, n, "
        f"'until_executed', now() - interval '1 hour' FROM generate_series(1, {MANY}) n"
    ),
)
GATES = {"keys": [f"t/{n}" for n in IDS], "user_slots": 2}
NEW = {
    **UNIQUE_JOB,
    "queue_id": 1,
    "args": json.dumps([{} for _ in IDS]),
    "errors": json.dumps([{} for _ in IDS]),
    "keys": [f"key-{n}" for n in IDS],
}
MONTHS = {"start": MONTH, "end": MONTH + timedelta(days=27), "latest": datetime.now(UTC)}
FLAGS = {name: array(True for _ in IDS) for name in ("arguments", "results", "errors")}
MONITORS = {"keys": ["5"], "by_tenant": False}
IN_LINE = {"state": "'held'", "held_by": "'monitor'", "monitor_id": "5"}
OF_TASK = {"state": "'held'", "held_by": "'task'"}


def in_line(kind: str) -> dict[str, str]:
    return {"state": "'held'", "held_by": f"'{kind}'", f"{kind}_key": "'t/' || n"}


CASES: dict[str, Many] = {
    "finish_jobs": Many(ENDS, CLAIMED),
    "reschedule_jobs": Many({**ENDS, "delays": array(5 for _ in IDS)}, CLAIMED),
    "return_jobs": Many(
        {
            **ENDS,
            "delay_seconds": 0.0,
            "errors": ENDS["extras"],
            "ending_class": "tests.Unknown",
            "most_seconds": 60.0,
        },
        CLAIMED,
    ),
    "record_runs": Many(ENDS, CLAIMED),
    "watch_jobs": Many(CLAIMS, CLAIMED, QUEUES),
    "take_over": Many(
        {**CLAIMS, "workers": array(WORKER for _ in IDS)}, CLAIMED, (*QUEUES, *WORKERS)
    ),
    "fail_jobs": Many({**DEATHS, "counted": array(IDS)}, CLAIMED),
    "rescue_jobs": Many(
        {**DEATHS, "counted": array(True for _ in IDS), "delays": array(1 for _ in IDS)}, CLAIMED
    ),
    "take_task_slots": Many({**CLAIMS, "locked": True}, CLAIMED, control(MANY // 2)),
    "mark_task_jobs": Many({}, CLAIMED, control(1)),
    "read_previous_results": Many(CLAIMS, {**CLAIMED, "previous_id": "n"}),
    "request_cancel": Many(CLAIMS, CLAIMED),
    "cancel_waiting_jobs": Many({"ids": array(IDS), "error": None, "halts": True}, READY),
    "set_priority": Many({"ids": array(IDS), "priority": 5, "lane": 5}, READY),
    "set_queue": Many({"ids": array(IDS), "queue_id": 2}, READY, QUEUES),
    "set_run_at": Many({"ids": array(IDS), "run_at": datetime.now(UTC)}, READY),
    "promote_jobs": Many(
        {"most": MANY, "now": None}, {"state": "'scheduled'", "run_at": "now() - interval '1 hour'"}
    ),
    "retry_jobs": Many({"ids": array(IDS), "by_tenant": False}, ENDED),
    "delete_jobs": Many({"ids": array(IDS)}, ENDED),
    "delete_ended": Many({"ids": array(IDS), **MONTHS}, ENDED),
    "thin_ended": Many({"ids": array(IDS), **FLAGS, **MONTHS}, ENDED),
    "release_monitors": Many(MONITORS, IN_LINE, monitor(MANY)),
    "release_monitors (take back)": Many(MONITORS, {**READY, "monitor_id": "5"}, monitor(1)),
    "release_monitors (renew)": Many(
        MONITORS, {**READY, "monitor_id": "5"}, monitor(MANY, priority=100)
    ),
    "release_gates": Many(
        {"keys": ["t/u"], "user_slots": 2, "kind": "limit_user"},
        {"state": "'held'", "held_by": "'limit_user'", "limit_user": "'t/u'"},
        user_limit(MANY),
    ),
    "release_gates (take back)": Many(
        {"keys": ["t/u"], "user_slots": 2, "kind": "limit_user"},
        {**READY, "limit_user": "'t/u'"},
        user_limit(1),
    ),
    "release_gates (sessions)": Many({**GATES, "kind": "session"}, in_line("session")),
    "release_gates (exclusive)": Many({**GATES, "kind": "exclusive"}, in_line("exclusive")),
    "find_rejected": Many(
        GATES, {**in_line("exclusive"), "unique_mode": "'while_executing_reject'"}, EXCLUSIVE_INSIDE
    ),
    "halt_sessions": Many({**GATES, "jobs": array(IDS), "wanted": array(True for _ in IDS)}, READY),
    "set_aside": Many(
        {"kind": "ready", "keys": [], "lanes": "{240}", "queues": "{1}", "most": MANY},
        READY,
        control(1, paused=True),
    ),
    "open_task_lines": Many({"tasks": ["noop"], "most": MANY}, OF_TASK),
    "release_task": Many(
        {
            "task": "noop",
            "start": 0,
            "from_lane": -40_000,
            "from_queue": 0,
            "from_wrapped": True,
            "waits": True,
            "most": MANY,
            "most_steps": 200,
        },
        OF_TASK,
        (*QUEUES, *control(MANY)),
    ),
    "lock_moving_jobs": Many({"queues": array([1, *IDS])}, READY),
    "free_keys": Many({**NEW, "ids": array(IDS)}, ENDED, KEYS),
    "lock_existing_jobs": Many({"ids": json.dumps(IDS), "patience_seconds": 5.0}, READY),
    "prune_expired_keys": Many({"most": MANY}, READY, KEYS),
    "prune_stale_keys": Many({"after": "", "most": MANY}, ENDED, KEYS),
    "retake_keys": Many(
        {"ids": array(IDS), "passed_over": "{}"},
        {**READY, "unique_key": "'key-' || n", "unique_mode": "'until_executed'"},
    ),
    "insert_unique_jobs": Many(NEW, READY, KEYS),
}
"""What comes behind a name tells cases of one statement apart."""


class Planner:
    """Explains statements after their tables were analysed empty, undoing what they do."""

    def __init__(self) -> None:
        self.worker = connect("default", "test")
        params = connections["default"].get_connection_params()
        params.pop("cursor_factory", None)
        params.pop("context", None)
        self.web = psycopg.connect(**params, autocommit=True)
        self.set_autovacuum("SET (autovacuum_enabled = false)")

    def close(self) -> None:
        self.web.execute(f"TRUNCATE {TABLES} RESTART IDENTITY CASCADE")
        self.set_autovacuum("RESET (autovacuum_enabled)")
        self.worker.close()
        self.web.close()

    def set_autovacuum(self, change: str) -> None:
        for table in LEFT_EMPTY:
            self.web.execute(f"ALTER TABLE {table} {change}")

    def analyze_empty(self, *, has_pages: bool) -> None:
        """Analyse the tables when they have no rows; `has_pages`: rows were there before."""
        self.web.execute(f"TRUNCATE {TABLES} RESTART IDENTITY CASCADE")
        if has_pages:
            with self.web.transaction():
                insert(self.web, Many({}, READY, KEYS))
                insert(self.web, Many({}, ENDED))
            for table in LEFT_EMPTY:
                self.web.execute(f"DELETE FROM {table}")
                self.web.execute(f"VACUUM (TRUNCATE FALSE) {table}")
        self.web.execute(f"ANALYZE {TABLES}")

    def explain(self, raw: Raw, case: str, *, ahead: bool) -> dict[str, Any]:
        """Run a statement, undo it, and return its plan. `ahead`: planned without its rows."""
        many, name = CASES[case], case.split()[0]
        text, names = numbered(name)
        values = sql.SQL(", ").join(sql.Literal(many.params[name]) for name in names)
        raw.execute("DEALLOCATE ALL")
        with raw.transaction(force_rollback=True):
            raw.execute(b"PREPARE tried AS " + text)
            run = sql.SQL("EXECUTE tried ({})" if names else "EXECUTE tried").format(values)
            if ahead:
                raw.execute(sql.SQL("EXPLAIN ") + run)
            insert(raw, many)
            explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ")
            row = raw.execute(explain + run).fetchone()
            assert row is not None
            return row[0][0]["Plan"]


def insert(raw: Raw, many: Many) -> None:
    columns = {
        "id": "n",
        "queue_id": "1",
        "lane": "240",
        "priority": "240",
        "max_attempts": "5",
        "task": "'noop'",
        "source_type": "'task'",
        "source_method": "'noop'",
        **many.jobs,
    }
    raw.execute(
        f"INSERT INTO tenantqueue_job ({', '.join(columns)}) SELECT {', '.join(columns.values())} "
        f"FROM generate_series(1, {MANY}) n".encode()
    )
    for text in many.before:
        raw.execute(text.encode())


def rows_of(plan: dict[str, Any]) -> int:
    """Return how many rows the nodes of a plan have read, and dropped."""
    counted = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter")
    return sum(
        round(sum(node.get(name, 0) for name in counted) * node["Actual Loops"])
        for node in nodes(plan)
    )


def most_of(plan: dict[str, Any]) -> int:
    """Return how many rows one of its nodes has returned: the statement did find them."""
    return max(round(node["Actual Rows"] * node["Actual Loops"]) for node in nodes(plan))


@pytest.fixture(scope="module")
def planner(
    django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker
) -> Iterator[Planner]:
    with django_db_blocker.unblock():
        made = Planner()
        try:
            yield made
        finally:
            made.close()
            connections.close_all()


@pytest.fixture(params=["no pages", "pages"])
def emptied(request: pytest.FixtureRequest, transactional_db: None, planner: Planner) -> str:
    """Done for each test: what empties the tables after one would give them other pages."""
    planner.analyze_empty(has_pages=request.param == "pages")
    return request.param


@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "now"])
@pytest.mark.parametrize("who", ["worker", "web"])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_not_compared_with_each_other_when_the_table_was_analysed_empty(
    planner: Planner, emptied: str, case: str, who: str, ahead: bool
) -> None:
    plan = planner.explain(getattr(planner, who), case, ahead=ahead)

    assert most_of(plan) >= MANY - 1
    assert rows_of(plan) <= MOST_ROWS
