"""A database router for projects with several databases."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from .conf import get_settings

APP = "tenantqueue"


class TenantQueueRouter:
    """Routes the package's models, and their tables, to the database that `DATABASE` names.

    Put it first in `DATABASE_ROUTERS`, so that jobs are never read from a replica and their tables
    are created in no other database.
    """

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        """Return the jobs' database for our models."""
        return get_settings().database if model._meta.app_label == APP else None

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        """Return the jobs' database for our models."""
        return self.db_for_read(model)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Whether our tables are made in a database."""
        return db == get_settings().database if app_label == APP else None
