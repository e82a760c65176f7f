"""What all migrations of the package share."""

from __future__ import annotations

from typing import Any

from django.db import migrations


class PostgresMigration(migrations.Migration):
    """A migration that does nothing in a database that is not PostgreSQL.

    A project without a router for its second database can migrate that one, too, and test.
    """

    def apply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Apply it. See Django's Migration."""
        if schema_editor.connection.vendor != "postgresql":
            return self.mutate_state(project_state, preserve=False)
        return super().apply(project_state, schema_editor, collect_sql)

    def unapply(self, project_state: Any, schema_editor: Any, collect_sql: bool = False) -> Any:
        """Undo it. See Django's Migration."""
        if schema_editor.connection.vendor != "postgresql":
            return project_state
        return super().unapply(project_state, schema_editor, collect_sql)
