"""What all migrations of the package share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import OperationalError, migrations, transaction

T = TypeVar("T")
LOCK_NOT_AVAILABLE = "55P03"
PAUSE_SECONDS = 0.1
TRIES = 600


def patiently(schema_editor: Any, change: Callable[[], T]) -> T:
    """Call `change` in a transaction whose locks are waited for 100 ms at most, and again.

    A statement that waits for a table's lock makes all enqueues, claims and heartbeats wait behind
    it. Raises OperationalError after two minutes, or what `change` raises.
    """
    connection, deferred = schema_editor.connection, list(schema_editor.deferred_sql)
    for left in reversed(range(TRIES)):
        schema_editor.deferred_sql = list(deferred)
        try:
            with transaction.atomic(using=connection.alias):
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL lock_timeout = '100ms'")
                changed = change()
                while schema_editor.deferred_sql:
                    schema_editor.execute(schema_editor.deferred_sql.pop(0))
                return changed
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                raise
            if not left:
                raise OperationalError(
                    "open transactions have kept a table from being locked for two minutes: run "
                    "this migration again when they have ended"
                ) from error
        time.sleep(PAUSE_SECONDS)
    raise AssertionError("the last try returns or raises")


class PostgresMigration(migrations.Migration):
    """A migration that waits for no lock for long, and only runs in PostgreSQL.

    In another database it does nothing: a project without a router for its second database can
    migrate that one, too, and test.
    """

    def apply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Apply it. See Django's Migration."""
        if schema_editor.connection.vendor != "postgresql":
            return self.mutate_state(project_state, preserve=False)
        apply = super().apply
        if collect_sql or not schema_editor.atomic_migration:
            return apply(project_state, schema_editor, collect_sql)
        return patiently(schema_editor, lambda: apply(project_state.clone(), schema_editor))

    def unapply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Undo it. See Django's Migration."""
        if schema_editor.connection.vendor != "postgresql":
            return project_state
        unapply = super().unapply
        if collect_sql or not schema_editor.atomic_migration:
            return unapply(project_state, schema_editor, collect_sql)
        return patiently(schema_editor, lambda: unapply(project_state.clone(), schema_editor))
