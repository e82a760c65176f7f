"""Two databases as shards, each in a schema of its own. `default` holds the project's rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.test import override_settings

from django_tenantqueue.contrib.shards.routes import aliases, forget_pins, ranking_of
from django_tenantqueue.contrib.shards.setup import set_up
from django_tenantqueue.operations.queues import forget_queues
from tests.databases import other_database, settings_of, url_of_schema

ROUTER = "django_tenantqueue.routers.TenantQueueRouter"
ALIASES = ("us0", "eu1")


def tenant_of(alias: str, number: int = 0) -> str:
    """Return a tenant whose hash is in a database."""
    names = (f"tenant{n}" for n in range(10_000))
    here = [*aliases()].index(alias)
    return [name for name in names if ranking_of(name, len(aliases()))[0] == here][number]


def sharded(*names: str, **more: Any) -> dict[str, Any]:
    return {"DATABASE": names[0], "SHARDS": {"DATABASES": list(names), **more}}


@pytest.fixture(scope="session")
def migrated(
    database_url: str, server_url: str, django_db_blocker: Any
) -> Iterator[dict[str, dict[str, Any]]]:
    """Make two migrated databases; return their settings by alias."""
    name = connection.settings_dict["NAME"]
    found = {alias: settings_of(url_of_schema(server_url, name, alias)) for alias in ALIASES}
    with django_db_blocker.unblock():
        for alias, settings in found.items():
            with connection.cursor() as cursor:
                cursor.execute(f"DROP SCHEMA IF EXISTS {alias} CASCADE")
                cursor.execute(f"CREATE SCHEMA {alias}")
            with other_database(alias, settings):
                call_command("migrate", database=alias, verbosity=0)
        connection.close()
    yield found
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for alias in ALIASES:
            cursor.execute(f"DROP SCHEMA IF EXISTS {alias} CASCADE")


@pytest.fixture
def schemas(transactional_db: None, migrated: dict[str, dict[str, Any]]) -> Iterator[None]:
    """Have two databases, which are empty and not set up."""
    with ExitStack() as stack:
        for alias, settings in migrated.items():
            stack.enter_context(other_database(alias, settings))
            _empty(alias)
        values = {"TENANTQUEUE": sharded(*ALIASES), "DATABASE_ROUTERS": [ROUTER]}
        stack.enter_context(override_settings(**values))
        forget_queues()  # the pins, too
        yield
        forget_queues()


def _empty(alias: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT relname, relkind FROM pg_class WHERE relnamespace = %s::regnamespace "
            "AND relname LIKE 'tenantqueue%%' AND relkind IN ('r', 'p', 'S')",
            [alias],
        )
        found = cursor.fetchall()
        tables = ", ".join(name for name, kind in found if kind != "S")
        cursor.execute(f"TRUNCATE {tables}")
        for name, kind in found:
            if kind == "S":
                cursor.execute(f"ALTER SEQUENCE {name} INCREMENT BY 1 START WITH 1 RESTART")


@pytest.fixture
def shards(schemas: None) -> None:
    """Have two shards."""
    set_up(lambda text: None)


@pytest.fixture
def down(shards: None) -> Iterator[str]:
    """Have a third shard, which is down; return its alias."""
    refused = settings_of("postgres://127.0.0.1:1/nowhere")
    with (
        other_database("ap2", refused),
        override_settings(TENANTQUEUE=sharded(*ALIASES, "ap2")),
    ):
        forget_pins()
        yield "ap2"
    forget_pins()
