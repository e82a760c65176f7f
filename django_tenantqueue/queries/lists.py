"""Statements that find the jobs of one page of a list: none counts, none sorts a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db import connections, transaction

from ..states import FINAL, State
from .base import commits_alone, fetch, statement

NEWEST = 2**63 - 1
"""A `before` that leaves nothing out."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What the jobs of a list have in common; None is no filter.

    `queues` are ids. `text` is a part of the task's name, a label or the arguments. `source` is an
    object: values of source_type that it has, and its source_id. `created_by` is who created the
    jobs; not with `source`. `before` is the id below which the page begins.
    """

    states: frozenset[State] | None = None
    queues: tuple[int, ...] | None = None
    task: str | None = None
    before: int = NEWEST
    text: str | None = None
    source: tuple[Sequence[str], str] | None = None
    created_by: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The ids that a statement found.

    `ids` is complete from `floor` up: jobs below it were not read; 0: all were. `capped`: there
    were more than `most` to read, in no order of ids, so that some may be missing.
    """

    ids: Sequence[int]
    floor: int = 0
    capped: bool = False


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
]


def list_jobs(using: str, name: Statement, asked: JobFilter, *, page: int, most: int) -> Found:
    """Run one of the statements, which read different indexes: `page` ids at most, newest first.

    `most` limits what is read. Unless it is by owner, the states are those of unfinished jobs or
    those of finished ones.
    """
    states = frozenset(State) if asked.states is None else asked.states
    source_types, source_id = asked.source or ((), None)
    params = {
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
        "created_by": asked.created_by,
    }
    rows = read_planned(using, name, params)
    floor, capped, _ = rows[0]
    return Found([row[2] for row in rows if row[2] is not None], floor, capped)


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
