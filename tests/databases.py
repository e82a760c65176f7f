"""Databases beside the one of the tests: in a schema of its own, on SQLite, or a replica."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from urllib.parse import quote, urlsplit

import environ
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}


@contextmanager
def other_database(alias: str, settings: dict[str, Any]) -> Iterator[None]:
    """Let `alias` be another database inside the with block. The test may use it."""
    made = connections.configure_settings({"default": {}, alias: settings})[alias]
    connections.settings[alias] = made
    try:
        with mock.patch.object(BaseDatabaseWrapper, "ensure_connection", _ensure_connection):
            yield
    finally:
        del connections.settings[alias]
        if hasattr(connections._connections, alias):
            connections[alias].close()
            delattr(connections._connections, alias)


def _ensure_connection(self: BaseDatabaseWrapper) -> None:
    """Connect. Django's, which tests patch, knows only of databases that were there before."""
    if self.connection is None:
        with self.wrap_database_errors:
            self.connect()


def url_of_schema(url: str, database: str, schema: str) -> str:
    options = f"options={quote(f'-c search_path={schema}')}"
    return urlsplit(url)._replace(path=f"/{database}", query=options).geturl()


def settings_of(url: str) -> dict[str, Any]:
    return environ.Env.db_url_config(url)
