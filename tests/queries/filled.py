"""A table as it looks in bad times: many queues, most of them blocked, and dead rows among all."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection

from django_tenantqueue.operations.maintain import history

FULL = bool(os.environ.get("TENANTQUEUE_FULL_SIZE"))
"""Whether "make plans" asks for a million waiting jobs and ten million ended ones."""
SCALE = 5 if FULL else 1
"""So many times the usual number of queues, and thus of dead rows."""
QUEUES = 2000 * SCALE
READY_OF_A_QUEUE = 100
SCHEDULED = 20_000
DUE = 50
FINISHED = 10_000_000 if FULL else 300_000
WORKERS = 3000
MONITORS = 40
IN_LINE = 500
SLEEPING = 5
STALE_KEYS = 20_000
RARE = "tests.testapp.tasks.rare"
OUR_WORKER = 1
OTHER_WORKER = 2

TABLES = (
    "tenantqueue_job, tenantqueue_tenantqueue, tenantqueue_queuerate, tenantqueue_session, "
    "tenantqueue_taskcontrol, tenantqueue_taskrate, tenantqueue_uniquekey, "
    "tenantqueue_worker, tenantqueue_concurrentjobmonitor, tenantqueue_monitoraddition, "
    "tenantqueue_monitorpace, tenantqueue_figure, tenantqueue_figuretotal, "
    "tenantqueue_change, tenantqueue_apitoken, "
    "tenantqueue_idempotencykey"
)
COLUMNS = "queue_id, lane, priority, task, source_type, source_method, args"
NAME = "'tests.testapp.tasks.noop'"
CALL = f"'task', {NAME}, '{{\"args\": [1]}}'::jsonb"
VALUES = f"{NAME}, {CALL}"
ERRORS = """'[{"class": "ValueError"}]'::jsonb"""
FOLLOW_UPS = (
    """jsonb_build_array(jsonb_build_object('on', 'success', 'queue_id', q.id, 'lane', 240, """
    """'priority', 240, 'is_async', false, 'max_attempts', 5, 'task', 'noop', 'source_type', """
    """'task', 'source_id', '', 'source_method', 'noop', 'args', '{}'::jsonb))"""
)
"""What a tenth of the jobs of OUR_WORKER enqueue when they succeed."""
GATES = 500 * SCALE
"""Sessions, users, exclusive keys and capped tasks, so many of each, with LINE jobs in line and one
inside."""
LINE = 20
FILL = (
    # a quarter of the queues is paused, a quarter has one slot, which is taken; a fifth
    # of all have a rate, which half of these have used up, and a limit of their waiting jobs
    (
        "INSERT INTO tenantqueue_tenantqueue (tenant, name, num_slots, paused, max_per_second, "
        "max_waiting, created_at) SELECT 'tenant-' || n, 'default', CASE n % 4 WHEN 1 THEN 1 ELSE "
        "5 END, n % 4 = 0, CASE n % 5 WHEN 0 THEN 0.01 END, CASE n % 5 WHEN 0 THEN 1000 END, now() "
        f"FROM generate_series(1, {QUEUES}) n"
    ),
    (
        "INSERT INTO tenantqueue_queuerate (queue_id, debt, as_of) SELECT q.id, (q.id / 5) % 2, "
        "now() FROM tenantqueue_tenantqueue q WHERE q.max_per_second IS NOT NULL"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}) "
        f"SELECT q.id, p.priority, p.priority, {VALUES} "
        f"FROM generate_series(1, {READY_OF_A_QUEUE}) n, tenantqueue_tenantqueue q, "
        "LATERAL (SELECT (ARRAY[120, 240, 240, 240, 340])[n % 5 + 1] AS priority) p"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, errors, run_at) "
        f"SELECT q.id, 240, 240, {VALUES}, 'scheduled', CASE WHEN n = 0 THEN {ERRORS} END, "
        f"now() + (n * {QUEUES} - {DUE} + q.id) * interval '1 minute' "
        f"FROM generate_series(0, {SCHEDULED} / {QUEUES} - 1) n, tenantqueue_tenantqueue q"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, worker_id, claim_seq, attempt, "
        f"max_attempts, queued_at) SELECT q.id, 240, 240, {VALUES}, 'running', {OTHER_WORKER}, 1, "
        "1, 5, now() FROM tenantqueue_tenantqueue q WHERE q.num_slots = 1 AND NOT q.paused"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, worker_id, claim_seq, attempt, "
        f"max_attempts, queued_at, follow_ups) SELECT q.id, 240, 240, {VALUES}, 'queued', "
        f"{OUR_WORKER}, 1, 1, 5, now(), CASE WHEN q.id % 10 = 1 THEN {FOLLOW_UPS} END "
        "FROM tenantqueue_tenantqueue q WHERE q.num_slots = 5 AND NOT q.paused LIMIT 100"
    ),
    # the anchors of monitors have the negative of their ids
    (
        "INSERT INTO tenantqueue_concurrentjobmonitor (tenant, name, parallel, "
        "interval_seconds, priority, paused, anchor_id, created_at, stop_after_failures) "
        "OVERRIDING SYSTEM VALUE "
        "SELECT 'tenant-1', 'work', 20, 0, 300, false, -n, now(), 10 "
        f"FROM generate_series(1, {MONITORS}) n"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot (id, {COLUMNS}, state, held_by, monitor_id) "
        f"SELECT m.anchor_id, 1, 300, 300, {VALUES}, 'held', 'details', m.id "
        "FROM tenantqueue_concurrentjobmonitor m"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, held_by, monitor_id) "
        f"SELECT 1, 300, 300, {VALUES}, CASE WHEN n <= 15 THEN 'ready' ELSE 'held' END, "
        "CASE WHEN n > 15 THEN 'monitor' END, m.id "
        f"FROM generate_series(1, {IN_LINE}) n, tenantqueue_concurrentjobmonitor m"
    ),
    (
        "INSERT INTO tenantqueue_worker (name, host, pid, supervisor_pid, version, started_at, "
        "heartbeat_at, queues, exclude_queues, tenants, threads, async_slots, draining, leased, "
        "sleeping_until) SELECT 'worker', 'here', 1, 1, '0', now(), now(), '{}', '{}', '{}', 8, 9, "
        f"false, false, CASE WHEN n <= {SLEEPING} THEN now() + interval '1 hour' "
        f"WHEN n <= {WORKERS} / 2 THEN now() - interval '1 minute' END "
        f"FROM generate_series(1, {WORKERS}) n"
    ),
    # keys of jobs that wait, of jobs that are gone, and of those whose time is over
    (
        "INSERT INTO tenantqueue_uniquekey (key, job_id, mode, expires_at) "
        "SELECT 'acme/' || j.id, j.id, 'until_executing', CASE j.id % 4 WHEN 0 THEN now() + "
        "interval '1 hour' END FROM tenantqueue_job_hot j WHERE j.state = 'ready'"
    ),
    (
        "INSERT INTO tenantqueue_uniquekey (key, job_id, mode, expires_at) SELECT 'gone/' || n, "
        f"1000000000 + n, 'until_executed', CASE WHEN n % 4 = 0 THEN now() - interval '1 hour' END "
        f"FROM generate_series(1, {STALE_KEYS}) n"
    ),
    # of every object some changes, the oldest of them older than they are kept
    (
        "INSERT INTO tenantqueue_change (made_at, actor, source, action, object_kind, object_ids, "
        "object_count, object_label, tenant, before, after) SELECT now() - (20100 - n) * interval "
        "'30 minutes', 'user-' || n % 50, 'admin', 'tune', CASE n % 3 WHEN 0 THEN 'job' ELSE "
        f"'queue' END, ARRAY[n % {QUEUES}, n], 2, 'tenant-' || n % {QUEUES} || ' / default', "
        f"'tenant-' || n % {QUEUES}, '{{}}', '{{}}' FROM generate_series(1, 20000) n"
    ),
    # jobs that would not wait before their exclusive keys
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, held_by, exclusive_key, unique_mode) "
        f"SELECT q.id, 240, 240, {VALUES}, 'held', 'exclusive', 'tenant/' || q.id % 300, "
        "'while_executing_reject' FROM tenantqueue_tenantqueue q"
    ),
)
KEYS = {"session": "session_key", "limit_user": "limit_user", "exclusive": "exclusive_key"}
"""The column of the key of each gate."""
GATED = (
    *(
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, held_by, {column}) "
        f"SELECT q.id, 240, 240, {VALUES}, 'held', '{kind}', 'tenant/' || n "
        f"FROM generate_series(1, {GATES}) n, generate_series(1, {LINE}), "
        "(SELECT id FROM tenantqueue_tenantqueue WHERE paused LIMIT 1) q"
        for kind, column in KEYS.items()
    ),
    *(
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, worker_id, claim_seq, attempt, "
        f"max_attempts, queued_at, {column}) SELECT q.id, 240, 240, {VALUES}, 'running', "
        f"{OTHER_WORKER}, 1, 1, 5, now(), 'tenant/' || n FROM generate_series(1, {GATES}, 2) n, "
        "(SELECT id FROM tenantqueue_tenantqueue WHERE paused LIMIT 1) q"
        for column in KEYS.values()
    ),
    # a session whose head is overtaken: half of its priorities hold jobs that block
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, held_by, session_key, session_skip, "
        f"run_at) SELECT q.id, 240, n % 50, {VALUES}, 'held', 'session', 'tenant/4', n % 50 < 25, "
        "now() + interval '1 day' FROM generate_series(1, 2000) n, "
        "(SELECT id FROM tenantqueue_tenantqueue WHERE paused LIMIT 1) q"
    ),
    *(
        "INSERT INTO tenantqueue_session (kind, tenant, key, gate_key, created_at) SELECT "
        f"'{kind}', 'tenant', n, 'tenant/' || n, now() FROM generate_series(1, {GATES}) n"
        for kind in ("serial", "limit_user")
    ),
    # one task has a line in every queue
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, held_by) SELECT q.id, 240, 240, "
        f"'task-' || n, {CALL}, 'held', 'task' FROM generate_series(1, {GATES}) n, "
        f"generate_series(1, {LINE}), (SELECT id FROM tenantqueue_tenantqueue LIMIT 1) q"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, held_by) SELECT q.id, 240, 240, "
        f"'task-7', {CALL}, 'held', 'task' FROM tenantqueue_tenantqueue q"
    ),
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}, state, worker_id, claim_seq, attempt, "
        f"max_attempts, queued_at, task_at) SELECT q.id, 240, 240, 'task-' || n, {CALL}, "
        f"'running', {OTHER_WORKER}, 1, 1, 5, now(), now() FROM generate_series(1, {GATES}) n, "
        "(SELECT id FROM tenantqueue_tenantqueue WHERE paused LIMIT 1) q"
    ),
    (
        "INSERT INTO tenantqueue_taskcontrol (task, num_slots, created_at) "
        f"SELECT 'task-' || n, 3, now() FROM generate_series(1, {GATES}, 2) n"
    ),
    # one with jobs that were claimed before it
    (
        "INSERT INTO tenantqueue_taskcontrol (task, num_slots, created_at) "
        f"VALUES ({NAME}, 5, now())"
    ),
    # the tasks of the cases have a rate, too
    (
        "UPDATE tenantqueue_taskcontrol SET max_per_second = 1000, burst = 100 "
        f"WHERE task IN ('task-7', {NAME})"
    ),
    (
        "INSERT INTO tenantqueue_taskrate (control_id, debt, as_of) SELECT c.id, 1, now() "
        "FROM tenantqueue_taskcontrol c WHERE c.max_per_second IS NOT NULL"
    ),
)
HISTORY = (
    f"INSERT INTO tenantqueue_job_history ({COLUMNS}, final, state, errors, attempt, claim_seq, "
    "queued_at, started_at, finished_at) "
    f"SELECT q.id, 240, 240, CASE n %% 100 WHEN 7 THEN '{RARE}' ELSE {NAME} END, {CALL}, true, "
    "CASE n %% 20 WHEN 7 THEN 'error' WHEN 8 THEN 'cancelled' ELSE 'success' END, "
    f"CASE WHEN n %% 20 < 9 THEN {ERRORS} END, 1, 1, "
    "%(since)s::timestamptz + n * interval '90 seconds', "
    "%(since)s::timestamptz + n * interval '90 seconds', "
    "%(since)s::timestamptz + n * interval '90 seconds' "
    f"FROM generate_series(1, {FINISHED} / {QUEUES}) n, tenantqueue_tenantqueue q"
)
FIGURES = tuple(
    "INSERT INTO tenantqueue_figure (queue_id, at, task, error, minutes, started, succeeded, "
    "failed, retried, cancelled, wait_seconds, run_seconds, waits, runs, last_job_id) "
    f"SELECT {queue}, date_bin(interval '{minutes} minutes', now(), 'epoch') "
    f"- n * interval '{minutes} minutes', {name}, {error}, {minutes}, 9, 8, 1, 0, 0, 1.5, 2.5, "
    "'{0,0,0,5,4}', '{0,0,0,0,0,0,0,0,9}', 1 "
    f"FROM generate_series(0, {periods}) n, generate_series(1, {rows}) m"
    for minutes, periods in ((1, 240), (60, 190), (1440, 410))
    for queue, name, error, rows in (
        ("0", "''", "''", 1),
        ("0", "'task-' || m", "''", 30),
        ("m", "'task-' || m % 30", "''", 300),
        ("m", "'task-' || m % 30", "'ValueError'", 10),
        ("0", "'task-' || m", "'ValueError'", 10),
    )
)
"""Minutes, hours and days of 300 queues and 30 tasks."""
TOTALS = (
    "INSERT INTO tenantqueue_figuretotal (task, at, started, succeeded, failed, retried, "
    "cancelled, wait_micros, run_micros, waits, runs) SELECT task, date_trunc('minute', now()) "
    "- interval '11 minutes', 90, 80, 10, 0, 0, 15, 25, '{0,0,0,50,40}', '{0,0,0,0,0,0,0,0,90}' "
    "FROM unnest(ARRAY(SELECT '' UNION ALL SELECT 'task-' || m FROM generate_series(1, 20) m)) task"
)
ENDED_DETAILS = (
    f"INSERT INTO tenantqueue_job_history ({COLUMNS}, final, state, finished_at, monitor_id) "
    f"SELECT 1, 300, 300, {VALUES}, true, CASE n %% 50 WHEN 7 THEN 'error' ELSE 'success' END, "
    "now() - n * interval '1 second', 1 + n %% 40 FROM generate_series(1, 20000) n"
)
OWNED = (
    "INSERT INTO tenantqueue_job (queue_id, lane, priority, task, source_type, source_id, "
    "source_method, created_by, final, state, finished_at) SELECT 1 + n % 9, 300, 300, "
    f"{NAME}, 'shop.report', n % 400, 'build', n % 400, n % 20 > 0, CASE WHEN n % 20 > 0 THEN "
    "'success' ELSE 'ready' END, CASE WHEN n % 20 > 0 THEN now() END "
    "FROM generate_series(1, 20000) n"
)
LABELLED = (
    "INSERT INTO tenantqueue_job (queue_id, lane, priority, task, source_type, source_method, "
    "labels, args, session_key, final, state, finished_at, run_at) SELECT 1 + n % 9, 300, 300, "
    f"{NAME}, 'task', {NAME}, ARRAY['label-' || n % 400, 'all'], jsonb_build_object('search', "
    "jsonb_build_array('invoice=' || n % 400)), CASE WHEN n % 4 = 0 THEN 'labelled/1' END, "
    "n % 2 > 0, CASE WHEN n % 2 > 0 THEN 'success' ELSE 'scheduled' END, CASE WHEN n % 2 > 0 THEN "
    "now() END, now() + interval '1 year' FROM generate_series(1, 20000) n"
)
CHURN = (
    # claims that were rolled back
    (
        "BEGIN; UPDATE tenantqueue_job_hot SET state = 'queued', worker_id = 1, queued_at = now() "
        "WHERE state = 'ready' AND priority = 120; ROLLBACK"
    ),
    "BEGIN; UPDATE tenantqueue_job_hot SET priority = 1 WHERE state = 'held'; ROLLBACK",
    # jobs that came and went: their dead entries stand in front of what is ready
    (
        f"INSERT INTO tenantqueue_job_hot ({COLUMNS}) SELECT q.id, 100, 100, {VALUES} "
        "FROM generate_series(1, 10) n, tenantqueue_tenantqueue q"
    ),
    (
        "UPDATE tenantqueue_job_hot SET state = 'queued', worker_id = 1, queued_at = now(), "
        "claim_seq = claim_seq + 1 WHERE lane = 100"
    ),
    "DELETE FROM tenantqueue_job_hot WHERE lane = 100",
    # claims of queues with rates
    *("UPDATE tenantqueue_queuerate SET as_of = now() + interval '1 minute'",) * 20,
    "UPDATE tenantqueue_queuerate SET as_of = now()",
)


@dataclass(frozen=True, slots=True)
class Filled:
    """Ids that statements are given."""

    held: list[int]
    """Jobs of OUR_WORKER."""
    ready: list[int]
    scheduled: list[int]
    failed: list[int]
    """In the history."""
    open_queues: list[int]
    limited_queue: int
    """It has a limit of its waiting jobs."""
    token_id: int


TOKENS = (
    (
        "INSERT INTO tenantqueue_apitoken (name, tenant, scopes, digest, start) SELECT 't', "
        "n::text, 'read', n::text, 'tq_' FROM generate_series(1, 5000) n"
    ),
    (
        "INSERT INTO tenantqueue_idempotencykey (token_id, key, tenant, digest, created_at) SELECT "
        "(SELECT min(id) FROM tenantqueue_apitoken), 'key-' || n, '', '', now() - (25 - n / 800.0) "
        "* interval '1 hour' FROM generate_series(1, 20000) n"
    ),
    "ANALYZE tenantqueue_apitoken, tenantqueue_idempotencykey",
)
"""Tokens, and answers of the last 25 hours."""


def fill() -> Filled:
    """Fill the empty tables, with no vacuum, while the statistics say that all is empty."""
    _set_autovacuum("SET (autovacuum_enabled = false)")
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")
        cursor.execute(f"ANALYZE {TABLES}")
        for statement in (*FILL, *GATED, *FIGURES, TOTALS):
            cursor.execute(statement)
        month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        cursor.execute(HISTORY, {"since": month})
        cursor.execute(ENDED_DETAILS, {})
        cursor.execute(OWNED)
        cursor.execute(LABELLED)
        for statement in TOKENS:
            cursor.execute(statement)
        for statement in CHURN:
            cursor.execute(statement)
    return Filled(
        held=_ids("tenantqueue_job_hot WHERE worker_id = 1 AND state = 'queued'"),
        ready=_ids("tenantqueue_job_hot WHERE state = 'ready' AND id % 97 = 0"),
        scheduled=_ids("tenantqueue_job_hot WHERE state = 'scheduled'"),
        failed=_ids("tenantqueue_job_history WHERE state = 'error'"),
        open_queues=_ids("tenantqueue_tenantqueue WHERE num_slots = 5 AND NOT paused"),
        limited_queue=_ids("tenantqueue_tenantqueue WHERE max_waiting IS NOT NULL")[0],
        token_id=_ids("tenantqueue_apitoken")[0],
    )


def empty() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")
        cursor.execute(f"ANALYZE {TABLES}")
    _set_autovacuum("RESET (autovacuum_enabled)")


def _ids(where: str) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM {where} ORDER BY id LIMIT 100")
        return [row[0] for row in cursor.fetchall()]


def _set_autovacuum(change: str) -> None:
    tables = [
        "tenantqueue_job_hot",
        "tenantqueue_session",
        "tenantqueue_taskcontrol",
        "tenantqueue_tenantqueue",
        "tenantqueue_queuerate",
        "tenantqueue_worker",
        "tenantqueue_concurrentjobmonitor",
        "tenantqueue_change",
        *(leaf.name for leaf in history.list_leaves("default")),
    ]
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ALTER TABLE {table} {change}")
