"""Whether the tables are those that the migrations of this version have made."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

from django.apps import apps
from django.db import connections
from django.db.migrations.state import ProjectState
from django.db.models import CompositePrimaryKey
from psycopg.errors import UndefinedTable

from . import migrations

INDEXES = Path(migrations.__file__).parent / "0001_job_indexes.sql"
COLUMNS = """
    SELECT c.relname, a.attname
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relname = ANY (%s) AND c.relnamespace = (
        SELECT job.relnamespace FROM pg_class job WHERE job.oid = 'tenantqueue_job'::regclass
    )
"""


def find_difference(alias: str) -> str | None:
    """Return what differs between a database and the migrations that are applied there.

    A migration may have been rewritten since it was applied. None: nothing is missing, or a later
    version has migrated the database. Further columns do no harm: that version adds them first.
    """
    known = sorted(m.name for m in pkgutil.iter_modules(migrations.__path__) if m.name[0] != "_")
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT name FROM django_migrations WHERE app = 'tenantqueue'")
        applied = {name for (name,) in cursor.fetchall()}
        unknown = sorted(applied.difference(known))
        if unknown and unknown[-1] > known[-1]:
            return None
        if unknown:
            return f"it has the migration {unknown[0]!r}"
        expected = _columns_after([name for name in known if name in applied])
        cursor.execute(COLUMNS, [sorted({table for table, _ in expected})])
        found = {(table, column) for table, column in cursor.fetchall()}
        for table, column in sorted(expected - found):
            return f"the table {table!r} lacks the column {column!r}"
        indexes = re.findall(r"^CREATE (?:UNIQUE )?INDEX (\w+)", INDEXES.read_text(), re.M)
        cursor.execute("SELECT n FROM unnest(%s::text[]) n WHERE to_regclass(n) IS NULL", [indexes])
        if missing := cursor.fetchone():
            return f"it lacks the index {missing[0]!r}"
    return None


def _columns_after(names: list[str]) -> set[tuple[str, str]]:
    """Return the columns, each with its table, that these migrations say that there are."""
    state = ProjectState()
    for name in names:
        module = import_module(f"{migrations.__name__}.{name}")
        state = module.Migration(name, "tenantqueue").mutate_state(state, preserve=False)
    return {
        (
            model.options.get("db_table", f"tenantqueue_{model.name_lower}"),
            field.db_column or (f"{name}_id" if field.remote_field else name),
        )
        for model in state.models.values()
        if not model.options.get("proxy")
        for name, field in model.fields.items()
        if not isinstance(field, CompositePrimaryKey)
    }


def missing_table(error: BaseException) -> str | None:
    """Return what to do about a table that is missing; None: the error is another one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, UndefinedTable):
        cause = cause.__cause__
    if cause is None:
        return None
    said = cause.diag.message_primary or str(cause)
    # each name by itself: the message is in the server's language
    tables = {model._meta.db_table: model._meta.app_config for model in apps.get_models()}
    for name in re.findall(r"\w+", said):
        if (app := tables.get(name)) is not None:
            return f"table {name} of {app.name} is missing: run manage.py migrate"
    return f"a table is missing: run manage.py migrate ({said})"
