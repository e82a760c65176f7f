"""Which of several databases an error is about, and which rows of a tenant one may have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import ProgrammingError
from django.db.models import Model

from ...exceptions import Unsupported
from ...operations.erasure import tables
from ...schema import missing_table
from .models import ShardPin
from .routes import DOWN, not_migrated

ANYWHERE = "tenantqueue.change", "tenantqueue_api.apitoken"
"""Models with rows of a tenant in another database than that of its jobs. So are those of this
app."""


@contextmanager
def reaching(alias: str) -> Iterator[None]:
    """Raise Unsupported, with the alias, when a database is down or lacks the tables."""
    try:
        yield
    except DOWN as error:
        raise Unsupported(
            f"all databases are needed, and {alias!r} cannot be used: {str(error).strip()}"
        ) from error
    except ProgrammingError as error:
        if missing_table(error) is None:
            raise
        raise not_migrated(alias) from error


def first_rows(tenant: str, alias: str) -> str | None:
    """Return the name of the first rows of a tenant in a database; None: it has none."""
    for model in models_of_tenants():
        if model._default_manager.using(alias).filter(tenant=tenant).exists():
            return str(model._meta.verbose_name_plural)
    return None


def models_of_tenants() -> list[type[Model]]:
    """Return the models whose rows are in the database of their `tenant`."""
    return [
        model
        for model, lookup in tables().items()
        if lookup == "tenant"
        and model._meta.label_lower not in ANYWHERE
        and model._meta.app_label != ShardPin._meta.app_label
    ]
