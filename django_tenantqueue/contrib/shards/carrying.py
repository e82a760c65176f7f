"""Carries the rows of a tenant from one database to another. COPY streams them.

The caller opens a transaction in each database, and commits that of the target first. So after a
crash between the commits, rows are in both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from django.db.models import Model, QuerySet
from psycopg import Cursor, sql

from ...models import Change, ConcurrentJobMonitor, Job, TenantQueue
from ...models.change import models_by_kind
from ...operations.erasure import rows_of, tables
from .models import ShardMove, ShardPin

JOBS = sql.Identifier(Job._meta.db_table)
BATCH = 5000
"""Finished jobs that follow in one transaction."""
OF_JOBS: dict[str, LiteralString] = {
    "worker_id": "NULL::bigint",
    "state": "CASE WHEN held_by = 'task' THEN 'ready' ELSE state END",
    "held_by": "nullif(held_by, 'task')",
    "task_at": "CASE WHEN final THEN task_at END",
}
"""Columns about what only the source has: its workers, and its limits of tasks.

Like a new job, a job that came passes the limits of its task there when it is claimed.
"""


def moved_tables() -> list[type[Model]]:
    """Return the models of the rows that follow a tenant, in the order of deletion, queues last.

    Rows that are in the first database, such as API tokens, stay there.
    """
    return [
        model
        for model in tables()
        if model not in (ShardPin, ShardMove) and not getattr(model, "in_first_database", False)
    ]


def moved_changes(using: str, tenant: str) -> QuerySet[Change]:
    """Return the entries of the audit log that follow a tenant: not those about rows that stay."""
    staying = [
        kind
        for kind, model in models_by_kind().items()
        if getattr(model, "in_first_database", False)
    ]
    return Change.objects.using(using).filter(tenant=tenant).exclude(object_kind__in=staying)


def delete_all(using: str, tenant: str) -> None:
    """Delete all rows of a tenant that moves but its audit log, in the caller's transaction."""
    rows = TenantQueue.objects.using(using).filter(tenant=tenant)
    ids = list(rows.values_list("pk", flat=True))
    for model in moved_tables():
        if model is Change:
            continue
        if model is Job:
            Job.objects.using(using).filter(queue_id__in=ids).order_by()._raw_delete(using)
            continue
        for found in rows_of(using, model, tenant, ids):
            found.order_by()._raw_delete(using)


class Carrier:
    """Carries rows of a tenant in the open transactions of two databases.

    `ids`: the ids of its queues in the target, by those in the source.
    """

    def __init__(
        self, source: Cursor[Any], target: Cursor[Any], using: str, tenant: str, ids: dict[int, int]
    ) -> None:
        self.source, self.target = source, target
        self.using = using
        """The alias of the source."""
        self.tenant, self.ids = tenant, ids
        self._new_ids = sql.Literal(json.dumps(ids)) + sql.SQL("::jsonb")
        self._queues = sql.Literal(list(ids)) + sql.SQL("::integer[]")

    def carry_all(self) -> None:
        """Carry all rows but queues, and finished jobs that no unfinished one needs."""
        needed = self._needed_jobs()
        for model in moved_tables():
            if model is Job:
                self._carry(Job, sql.SQL("NOT final AND queue_id = ANY ({})").format(self._queues))
                self._carry(Job, needed)
                self._rewrite_follow_ups()
            elif model is not TenantQueue:
                self._carry(model, self._rows(model))

    def carry_batch(self, condition: LiteralString) -> int:
        """Carry a batch of the jobs that are left, and return their number.

        `condition`: final or not. A job that is in the target already is only deleted in the
        source.
        """
        of_queues = sql.SQL("{} AND worker_id IS NULL AND queue_id = ANY ({})").format(
            sql.SQL(condition), self._queues
        )
        if condition == "final":
            of_queues = sql.SQL("final AND queue_id = ANY ({})").format(self._queues)
        batch = sql.SQL("{0} AND id IN (SELECT id FROM {1} WHERE {0} LIMIT {2})").format(
            of_queues, JOBS, sql.Literal(BATCH)
        )
        self.target.execute(
            sql.SQL("CREATE TEMP TABLE tenantqueue_carried (LIKE {}) ON COMMIT DROP").format(JOBS)
        )
        count = self._carry(Job, batch, into="tenantqueue_carried")
        self._rewrite_follow_ups("tenantqueue_carried")
        self.target.execute(
            sql.SQL(
                "INSERT INTO {jobs} SELECT c.* FROM tenantqueue_carried c "
                "WHERE NOT EXISTS (SELECT FROM {jobs} j WHERE j.id = c.id)"
            ).format(jobs=JOBS)
        )
        return count

    def _needed_jobs(self) -> sql.Composable:
        """Return the condition of finished jobs that unfinished ones read.

        These are the details of monitors that have not ended, and the jobs that others follow.
        """
        self.source.execute(
            sql.SQL(
                "SELECT array_agg(DISTINCT monitor_id) FILTER (WHERE monitor_id IS NOT NULL), "
                "array_agg(previous_id) FILTER (WHERE previous_id IS NOT NULL), array_agg(id) "
                "FROM {} WHERE NOT final AND queue_id = ANY ({})"
            ).format(JOBS, self._queues)
        )
        monitors, previous, unfinished = self.source.fetchone() or (None, None, None)
        anchored = ConcurrentJobMonitor.objects.using(self.using).filter(tenant=self.tenant)
        left = set(unfinished or ())
        open_ones = {pk for pk, anchor in anchored.values_list("pk", "anchor_id") if anchor in left}
        return sql.SQL(
            "final AND queue_id = ANY ({}) AND (monitor_id = ANY ({}::bigint[]) "
            "OR id = ANY ({}::bigint[]))"
        ).format(
            self._queues,
            sql.Literal(sorted({*(monitors or ()), *open_ones})),
            sql.Literal(previous or []),
        )

    def _rows(self, model: type[Model]) -> sql.Composable:
        """Return the condition of a tenant's rows in a table of the source."""
        if tables()[model] == "queue_id__in":
            return sql.SQL("queue_id = ANY ({})").format(self._queues)
        found: QuerySet[Any]
        if model is Change:
            found = moved_changes(self.using, self.tenant)
        else:
            (found,) = rows_of(self.using, model, self.tenant, list(self.ids))
        pk = model._meta.pk
        compiler = found.order_by().values("pk").query.get_compiler(self.using)
        text, values = compiler.as_sql()
        inner = sql.SQL(text.replace("%s", "{}")).format(*map(sql.Literal, values))
        return sql.SQL("{} IN ({})").format(sql.Identifier(pk.column or ""), inner)

    def _carry(self, model: type[Model], condition: sql.Composable, into: str = "") -> int:
        table = model._meta.db_table
        columns = self._columns(table)
        values = [self._value(model, column) for column in columns]
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        taken = sql.SQL("COPY (DELETE FROM {} WHERE {} RETURNING {}) TO STDOUT").format(
            sql.Identifier(table), condition, sql.SQL(", ").join(values)
        )
        given = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(into or table), names)
        with self.source.copy(taken) as rows, self.target.copy(given) as copied:
            for block in rows:
                copied.write(block)
        return self.source.rowcount

    def _columns(self, table: str) -> Sequence[str]:
        self.source.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
            "AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
            [table],
        )
        return [name for (name,) in self.source]

    def _value(self, model: type[Model], column: str) -> sql.Composable:
        """Return the value of a column in the target, where ids of queues are others."""
        if column == "queue_id":
            return sql.SQL("coalesce(({} ->> queue_id::text)::integer, 0)").format(self._new_ids)
        if model is Job and column in OF_JOBS:
            return sql.SQL(OF_JOBS[column])
        if model is Change and column == "object_ids":
            return sql.SQL(
                "CASE WHEN object_kind = {} THEN ARRAY("
                "SELECT coalesce(({} ->> u.id::text)::bigint, u.id) FROM unnest(object_ids) u (id)"
                ") ELSE object_ids END"
            ).format(sql.Literal(str(Change.Kind.QUEUE)), self._new_ids)
        return sql.Identifier(column)

    def _rewrite_follow_ups(self, table: str = Job._meta.db_table) -> None:
        """Put the ids of the queues in the target into the follow-ups of its jobs."""
        named = sql.Identifier(table)
        self.target.execute(
            sql.SQL(
                "SELECT id, follow_ups::text FROM {} "
                "WHERE follow_ups IS NOT NULL AND queue_id = ANY ({}::integer[])"
            ).format(named, sql.Literal(list(self.ids.values())))
        )
        changed = [
            (json.dumps(_with_queues(json.loads(text), self.ids)), row_id)
            for row_id, text in self.target.fetchall()
        ]
        self.target.executemany(
            sql.SQL("UPDATE {} SET follow_ups = %s::jsonb WHERE id = %s").format(named), changed
        )


def _with_queues(calls: Any, ids: Mapping[int, int]) -> Any:
    """Return follow-ups with other ids of queues. A queue of another tenant has none there."""
    return [
        {
            **call,
            "queue_id": ids.get(call["queue_id"], 0),
            **(
                {"follow_ups": _with_queues(call["follow_ups"], ids)}
                if call.get("follow_ups")
                else {}
            ),
        }
        for call in calls
    ]
