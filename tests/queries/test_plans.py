"""Every statement of sql/ uses its index on a filled table, however unlucky the planner was.

A statement of a worker runs on the worker's connection (generic plans, made once and kept: here
also one that was made while the table was empty). Behind a pooler it is planned with its values
and the server's own settings; in web processes and maintenance in both ways, as the server likes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

import psycopg
import pytest
import pytest_django
from django.db import connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from django_tenantqueue.queries.base import PACKAGE, statement, statement_files
from django_tenantqueue.worker.connection import connect
from tests.plans import nodes
from tests.queries.cases import CALLS, CASES
from tests.queries.filled import TABLES, Filled, empty, fill

Raw = psycopg.Connection[Any]

MOST_COLUMNS = 100
MOST_HEAD_LINES = 8

JOB_TABLES = re.compile(r"tenantqueue_job(_hot|_history.*)?$")
NAMES = {
    "tenantqueue_job_hot_pkey": "primary key",
    "tenantqueue_history_pkey": "primary key of each",
    "tenantqueue_queuerate_pkey": "primary key",
    "tenantqueue_figure_pkey": "primary key",
    "tenantqueue_tenantqueue_pkey": "primary key",
    "tenantqueue_worker_pkey": "primary key",
    "tenantqueue_session_unique": "unique one of (gate_key, kind)",
}
"""How head comments call an index, when not by its name."""

ALL = [(name, number) for name, cases in CASES.items() for number in range(len(cases))]
PREPARED_ELSEWHERE = [
    (name, number)
    for name, number in ALL
    if not CASES[name][number].worker and not CASES[name][number].settings
]
OF_WORKERS = [(name, number) for name, number in ALL if CASES[name][number].worker]


def test_every_statement_is_tried_when_it_is_added():
    assert sorted(statement_files()) == sorted(CASES)


def test_sql_is_ascii_since_the_server_may_have_any_encoding():
    """A comment is sent, too, and a server with LATIN1 refuses what it cannot convert."""
    disk = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    ours = [
        sys.modules[type(disk[key]).__module__] for key in disk if key[0].startswith("tenantqueue")
    ]
    texts = {path.name: path.read_text() for path in PACKAGE.rglob("*.sql")}
    for module in ours:
        constants = {name: value for name, value in vars(module).items() if name.isupper()}
        texts |= {f"{module.__name__}.{name}": repr(value) for name, value in constants.items()}

    assert len(ours) > 6
    assert not [name for name, text in texts.items() if not text.isascii()]


def test_lines_of_sql_fit_when_they_are_read():
    long = [
        f"{path.name}:{number}"
        for path in sorted(PACKAGE.rglob("*.sql"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]

    assert not long


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.sql")), ids=lambda path: path.name)
def test_text_means_the_same_when_a_role_changes_standard_conforming_strings(path):
    """A backslash does in texts that begin with E alone."""
    assert not re.findall(r"(?<!E)'(?=[^'\n]*\\)[^'\n]*'", path.read_text())


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.sql")), ids=lambda path: path.name)
def test_head_comment_is_short_when_a_statement_is_added(path):
    lines = path.read_text().splitlines()
    head = list(takewhile(lambda line: line.startswith("--"), lines))

    assert len(head) <= MOST_HEAD_LINES


@pytest.mark.parametrize("name", CASES)
def test_head_comment_names_the_indexes_when_the_plan_needs_some(name):
    head = " ".join(
        line.removeprefix("--").strip()
        for line in statement(name).decode().splitlines()
        if line.startswith("--")
    )

    for case in CASES[name]:
        for index in case.indexes:
            assert NAMES.get(index, index) in head
        assert not case.scans or "sequential scan on purpose" in head


class Planner:
    """Explains statements, undoing what they do."""

    def __init__(self) -> None:
        self.worker = connect("default", "test")
        self.web = connection.copy()
        self.web.ensure_connection()
        self.web.connection.execute("SET plan_cache_mode = force_generic_plan")
        for raw in (self.worker, self.web.connection):
            # a claim gets these from lock_queues.sql, for the length of a transaction
            for name in ("lanes", "queues", "priorities", "ids", "unlimited"):
                raw.execute(f"SET tenantqueue.{name} = '{{}}'".encode())
        self.filled: Filled

    def close(self) -> None:
        self.worker.close()
        self.web.close()

    def plan_ahead(self) -> None:
        """Make the plans of all statements of a worker now, while the tables are empty."""
        nothing = Filled([1], [1], [1], [1], [1] * 10, 1, 1)
        for name, number in OF_WORKERS:
            run = execution(self.worker, name, number, nothing)
            self.worker.execute(sql.SQL("EXPLAIN ") + run)

    def replan(self) -> None:
        self.worker.execute("DISCARD PLANS")
        self.web.connection.execute("DISCARD PLANS")

    def explain_prepared(self, raw: Raw, name: str, number: int) -> dict[str, Any]:
        """Run a statement that is prepared there, undo it, and return its plan."""
        case = CASES[name][number]
        with raw.transaction(force_rollback=True):
            if case.before:
                raw.execute(execution(raw, case.before, 0, self.filled))
            return explained(psycopg.Cursor(raw), execution(raw, name, number, self.filled), None)

    def explain_with_values(self, name: str, number: int) -> dict[str, Any]:
        """Run a statement with its values and the server's settings; return its plan."""
        case = CASES[name][number]
        connection.ensure_connection()
        raw: Raw = connection.connection
        with raw.transaction(force_rollback=True):
            for setting, value in case.settings.items():
                raw.execute("SELECT set_config(%s, %s, true)", [setting, value])
            cursor = psycopg.Cursor(raw)
            if case.before:
                cursor.execute(statement(case.before), CASES[case.before][0].params(self.filled))
            return explained(cursor, sql.SQL(statement(name).decode()), case.params(self.filled))

    def explain_call(self, name: str) -> list[dict[str, Any]]:
        """Run a function, undo it, and return the plans of its statements."""
        plans = []

        def explain(execute: Any, text: str, params: Any, many: bool, context: Any) -> Any:
            if "tenantqueue_" in text:
                execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", params, many, context)
                plans.append(context["cursor"].fetchone()[0][0]["Plan"])
            return execute(text, params, many, context)

        with transaction.atomic(), connection.execute_wrapper(explain):
            CALLS[name].run(self.filled)
            transaction.set_rollback(True)
        return plans


def execution(raw: Raw, name: str, number: int, filled: Filled) -> sql.Composable:
    """Return EXECUTE of a statement with a case's values; it is prepared at its first use."""
    text = statement(name).decode()
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    prepared = f"{name}_{number}"
    if not raw.execute("SELECT FROM pg_prepared_statements WHERE name = %s", [prepared]).rowcount:
        numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", text)
        raw.execute(f"PREPARE {prepared} AS {numbered}".encode())
    values = CASES[name][number].params(filled)
    if not values:
        return sql.SQL("EXECUTE {}").format(sql.Identifier(prepared))
    return sql.SQL("EXECUTE {} ({})").format(
        sql.Identifier(prepared), sql.SQL(", ").join(sql.Literal(values[name]) for name in names)
    )


def explained(
    cursor: psycopg.Cursor[Any], run: sql.Composable, params: dict[str, Any] | None
) -> dict[str, Any]:
    explain = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ")
    row = cursor.execute(explain + run, params).fetchone()
    assert row is not None
    return row[0][0]["Plan"]


@pytest.fixture(scope="module")
def planner(
    django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker
) -> Iterator[Planner]:
    with django_db_blocker.unblock():
        made = Planner()
        try:
            empty()
            made.plan_ahead()
            made.filled = fill()
            yield made
        finally:
            made.close()
            empty()
            connections.close_all()


@pytest.fixture(scope="module", params=["empty", "filled"])
def analyzed(request: pytest.FixtureRequest, planner: Planner) -> str:
    """Say when the tables were analysed last; filled comes after empty."""
    if request.param == "filled":
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {TABLES}")
    planner.replan()
    return request.param


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize(("name", "number"), OF_WORKERS)
def test_index_is_used_when_a_worker_planned_on_an_empty_table(planner, name, number):
    check(lambda: planner.explain_prepared(planner.worker, name, number), name, number)


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize(("name", "number"), OF_WORKERS)
def test_index_is_used_when_a_worker_plans(planner, analyzed, name, number):
    check(lambda: planner.explain_prepared(planner.worker, name, number), name, number)


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize(("name", "number"), PREPARED_ELSEWHERE)
def test_index_is_used_when_a_web_process_plans_for_any_values(planner, analyzed, name, number):
    raw = planner.web.connection
    check(lambda: planner.explain_prepared(raw, name, number), name, number, analyzed)


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize(("name", "number"), ALL)
def test_index_is_used_when_the_values_are_known(planner, analyzed, name, number):
    check(lambda: planner.explain_with_values(name, number), name, number, analyzed)


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize("name", CALLS)
def test_index_is_used_by_a_function_with_the_orm(planner, analyzed, name):
    call = CALLS[name]
    plans = planner.explain_call(name)
    if call.first_walk and any(touched_by(plan) > call.buffers for plan in plans):
        assert all(touched_by(plan) <= call.buffers + call.first_walk for plan in plans)
        plans = planner.explain_call(name)

    assert plans
    assert not any(scanned_in(plan) for plan in plans)
    assert set(call.indexes) <= {index for plan in plans for index in used_in(plan)}
    assert all(touched_by(plan) <= call.buffers for plan in plans)


def touched_by(plan: dict[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def check(
    explain: Callable[[], dict[str, Any]], name: str, number: int, analyzed: str = "filled"
) -> None:
    case = CASES[name][number]
    plan = explain()
    if case.first_walk and touched_by(plan) > case.buffers:
        # it comes first: it has marked the dead entries, or filled the caches of its connection
        assert touched_by(plan) <= case.buffers + case.first_walk
        plan = explain()
    indexes = set(case.indexes)
    if analyzed == "empty":
        # with no statistics, reading the small table of workers whole costs the planner nothing
        indexes.discard("tenantqueue_worker_sleeping")

    assert case.scans or not scanned_in(plan)
    assert indexes <= used_in(plan)
    assert touched_by(plan) <= case.buffers


def scanned_in(plan: dict[str, Any]) -> set[str]:
    """Return the leaves of the job table that are read whole."""
    return {
        node["Relation Name"]
        for node in nodes(plan)
        if node["Node Type"] == "Seq Scan"
        and JOB_TABLES.match(node["Relation Name"])
        # an empty leaf is read as cheaply in one way as in the other
        and node["Shared Hit Blocks"] + node["Shared Read Blocks"] > 1
    }


def used_in(plan: dict[str, Any]) -> set[str]:
    return {parent_of(node["Index Name"]) for node in nodes(plan) if "Index Name" in node}


def parent_of(index: str) -> str:
    if index.startswith("tenantqueue_job_history_"):
        for column, parent in (
            ("monitor_id", "tenantqueue_history_monitor"),
            ("source_type", "tenantqueue_history_source"),
            ("created_by", "tenantqueue_history_creator"),
            ("queue_id_finished_at", "tenantqueue_history_ended"),
            ("ended", "tenantqueue_history_ended"),
            ("queue_id_id_idx1", "tenantqueue_history_pushed"),
            ("pushed", "tenantqueue_history_pushed"),
            ("queue_id", "tenantqueue_history_queue"),
            ("task", "tenantqueue_history_task"),
            ("state", "tenantqueue_history_failed"),
            ("pkey", "tenantqueue_history_pkey"),
            ("errors", "tenantqueue_history_errors"),
            ("labels", "tenantqueue_history_labels"),
            ("expr", "tenantqueue_history_search"),
            ("left", "tenantqueue_history_errors"),
        ):
            if f"_{column}" in index:
                return parent
    return index
