"""Statements that find the jobs of one page of a list: none counts, none sorts a whole table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.db import connections, transaction

from ..states import FINAL, UNFINISHED, State
from .base import commits_alone, fetch, statement

NEWEST = 2**63 - 1
"""A `before` that leaves nothing out."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What the jobs of a list have in common; None is no filter.

    `queues` are ids. `text` is a part of the task's name, a label or the arguments. `source` is an
    object: values of source_type that it has, and its source_id. `before` is the id below which the
    page begins, `after` the lowest id. Times begin with `…_from` and end before `…_to`.
    `argument` is a key of calls/searchable_option.py. `session` and `limit_user` are keys with
    their tenant. `error` is the class of the last error, with or without its module.
    """

    states: frozenset[State] | None = None
    queues: tuple[int, ...] | None = None
    task: str | None = None
    before: int = NEWEST
    text: str | None = None
    source: tuple[Sequence[str], str] | None = None
    created_by: str | None = None
    after: int = 0
    created_from: datetime | None = None
    created_to: datetime | None = None
    ended_from: datetime | None = None
    ended_to: datetime | None = None
    label: str | None = None
    argument: str | None = None
    session: str | None = None
    limit_user: str | None = None
    worker: int | None = None
    priority: int | None = None
    error: str | None = None

    @property
    def is_checked(self) -> bool:
        """Whether jobs are checked for more than state, queue, task, object and creator."""
        return any(getattr(self, name) is not None for name in ("text", *CHECKED))

    @property
    def key(self) -> str | None:
        """What list_jobs_of_key.sql finds jobs of these states by: one of KEYS; None: nothing."""
        given = {name for name in KEYS if getattr(self, name) is not None}
        if self.states is None or not self.states <= UNFINISHED:
            given -= {"session", "error"}
        return next((name for name in KEYS if name in given), None)

    @property
    def months(self) -> tuple[datetime | None, datetime | None]:
        """The months in which the jobs may have ended: their start and their end; None: open.

        A job ends after its creation.
        """
        starts = [at for at in (self.created_from, self.ended_from) if at is not None]
        first = max(starts, default=None)
        last = self.ended_to
        return (
            None if first is None else _month_of(first),
            None if last is None else _month_of(_month_of(last) + timedelta(days=32)),
        )


CHECKED = (
    *("created_from", "created_to", "ended_from", "ended_to"),
    *("label", "argument", "session", "limit_user", "worker", "priority", "error"),
)
"""The fields of a filter that all statements check, besides the text."""

KEYS = ("argument", "label", "session", "error")
"""The fields by which list_jobs_of_key.sql finds jobs: the first that is given."""


def _month_of(moment: datetime) -> datetime:
    """Return the start of a month of the history."""
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True)
class Found:
    """The ids that a statement found.

    `ids` is complete from `floor` up: jobs below it were not read; 0: all were. `capped`: there
    were more than `most` to read, in no order of ids, so that some may be missing.
    """

    ids: Sequence[int]
    floor: int = 0
    capped: bool = False


BITMAPS = {"enable_bitmapscan": "on", "enable_indexscan": "off", "enable_sort": "on"}
"""The planner's settings of list_jobs_of_key.sql, inside read_in_order()."""
_AVOIDED = ("enable_bitmapscan", "enable_seqscan", "enable_sort", "jit")
_TURN_OFF = (
    "SELECT name, current_setting(name), set_config(name, 'off', true) "
    "FROM unnest(%s::text[]) AS name"
)
_SET = "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS t (name, value)"


_read_in_order: ContextVar[str | None] = ContextVar("tenantqueue_read_in_order", default=None)


@contextmanager
def read_in_order(using: str) -> Iterator[None]:
    """Make statements read indexes in their order, inside a transaction.

    Left alone, the planner takes a queue of average size to be what was asked for, collects all
    its jobs by a bitmap and sorts them: 50,000 pages read where 4,000 rows were wanted.

    Inside another one for the same database it does nothing.
    """
    with plan_without(using, _AVOIDED):
        token = _read_in_order.set(using)
        try:
            yield
        finally:
            _read_in_order.reset(token)


@contextmanager
def _bitmaps(using: str) -> Iterator[None]:
    """Make statements read indexes by bitmaps, inside read_in_order(): GIN has no other way."""
    with connections[using].cursor() as cursor:
        cursor.execute(_SET, [list(BITMAPS), list(BITMAPS.values())])
        yield
        cursor.execute(_SET, [list(BITMAPS), ["off", "on", "off"]])


@contextmanager
def plan_without(using: str, avoided: Sequence[str]) -> Iterator[None]:
    """Turn these settings of the planner off, inside a transaction."""
    if _read_in_order.get() == using and set(avoided) <= set(_AVOIDED):
        yield
        return
    is_alone = commits_alone(using)
    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        cursor.execute(_TURN_OFF, [list(avoided)])
        names, values, _ = (list(column) for column in zip(*cursor.fetchall(), strict=True))
        yield
        if not is_alone:  # else they end with the transaction
            cursor.execute(_SET, [names, values])


Statement = Literal[
    "list_jobs_by_id",
    "list_jobs_by_state",  # that hold a slot, are scheduled, have failed or were cancelled
    "list_jobs_of_queues",  # that are ready or finished
    "list_history_of_task",
    "list_jobs_of_owner",  # of `source` or `created_by`
    "list_jobs_of_key",  # of a label, an argument, a session or an error
]


def list_jobs(using: str, name: Statement, asked: JobFilter, *, page: int, most: int) -> Found:
    """Run one of the statements, which read different indexes: `page` ids at most, newest first.

    `most` limits what is read. Unless it is by owner, the states are those of unfinished jobs or
    those of finished ones.
    """
    params = page_params(asked, page=page, most=most)
    if name == "list_jobs_of_key":
        with _bitmaps(using):
            rows = read_planned(using, name, params)
    else:
        rows = read_planned(using, name, params)
    floor, capped, _ = rows[0]
    return Found([row[2] for row in rows if row[2] is not None], floor, capped)


def page_params(asked: JobFilter, *, page: int, most: int) -> dict[str, Any]:
    """Return what the statements of list_jobs() take."""
    states = frozenset(State) if asked.states is None else asked.states
    source_types, source_id = asked.source or ((), None)
    month_from, month_to = asked.months
    key = asked.key
    return {
        "before": asked.before,
        "page": page,
        "most": most,
        "states": sorted(state.value for state in states),
        "final": states <= FINAL,
        "queues": None if asked.queues is None else list(asked.queues),
        "task": asked.task,
        "text": asked.text,
        "source_types": list(source_types),
        "source_id": source_id,
        "created_by": asked.created_by if asked.source is None else None,
        "creator": asked.created_by,
        "after": asked.after,
        "month_from": "-infinity" if month_from is None else month_from,
        "month_to": "infinity" if month_to is None else month_to,
        "error_end": None if asked.error is None else f"%.{_escaped(asked.error)}",
        **{name: getattr(asked, name) for name in CHECKED},
        **{f"key_{name}": getattr(asked, name) if name == key else None for name in KEYS},
    }


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def find_first_created(using: str, moment: datetime) -> int | None:
    """Return the lowest id of a job that was created then or later; None: there is none."""
    rows = read_planned(using, "find_first_created", {"moment": moment})
    return rows[0][0] if rows else None


@dataclass(frozen=True, slots=True)
class JobOfSource:
    """One job of a model instance; `source_id` is the primary key of the instance as text."""

    id: int
    source_id: str
    task: str
    state: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def list_jobs_of_sources(
    using: str, types: Sequence[str], ids: Sequence[str], *, most: int
) -> list[JobOfSource]:
    """Return the newest `most` jobs of each of some instances, the newest first."""
    params = {"types": list(types), "ids": list(ids), "most": most}
    return [JobOfSource(*row) for row in read_planned(using, "list_jobs_of_sources", params)]


def read_planned(using: str, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement by indexes in their order, and return its rows.

    Its values are sent inside it, so that PostgreSQL plans it for these values.
    """
    with read_in_order(using), connections[using].cursor() as cursor:
        cursor.execute(statement(name).decode(), params)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def fetch_in_order(using: str, name: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Do what fetch() does, by indexes in their order, whatever the statistics say."""
    with read_in_order(using):
        return fetch(using, name, params)
