"""A database router for projects with several databases."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from .conf import get_settings
from .databases import all_databases, database_of_row


class TenantQueueRouter:
    """Routes the package's models, and their tables, to the database that `DATABASE` names.

    With contrib.shards their tables are in all databases of SHARDS, and the rows that a row refers
    to are read from its database.

    These are the models of the app `tenantqueue`, and of all apps whose labels begin with
    `tenantqueue_`.

    Put it first in `DATABASE_ROUTERS`, so that jobs are never read from a replica and their tables
    are created in no other database.
    """

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        if not _is_ours(model._meta.app_label):
            return None
        row = hints.get("instance")
        if row is not None and _is_ours(row._meta.app_label):
            return database_of_row(row)
        return get_settings().database

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        return self.db_for_read(model, **hints)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Whether the package's tables are created in a database."""
        return db in all_databases() if _is_ours(app_label) else None


def _is_ours(app_label: str) -> bool:
    return app_label == "tenantqueue" or app_label.startswith("tenantqueue_")
