"""System checks of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings as django_settings
from django.core import mail
from django.core.checks import CheckMessage, Error
from django.db import DatabaseError, connections
from django.utils.module_loading import import_string

from ...checks import check_database
from ...conf import database, main_database
from ...exceptions import InvalidOption, Unsupported
from ...routers import TenantQueueRouter
from .models import Shard
from .routes import aliases, are_sharded, pins_of


def check_shards(**kwargs: Any) -> list[CheckMessage]:
    """E020: the databases of SHARDS cannot be used as shards."""
    try:
        if not are_sharded():
            return []
        return [
            Error(text, hint=f"{hint} See docs/howto/shards.md.", id="tenantqueue.E020")
            for text, hint in _problems()
        ]
    except InvalidOption:
        return []  # E001


def _problems() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place, known = "TENANTQUEUE['SHARDS']['DATABASES']", connections.settings
    if aliases()[0] != main_database():
        found.append(
            (
                f"{place} begins with {aliases()[0]!r}, but DATABASE is {main_database()!r}.",
                "Let both name the same alias.",
            )
        )
    for alias in aliases():
        if alias not in known:
            found.append(
                (
                    f"{place} has {alias!r}, which is not in DATABASES.",
                    f"DATABASES has {', '.join(sorted(known))}.",
                )
            )
        elif connections[alias].vendor != "postgresql":
            found.append(
                (
                    f"{place} has {alias!r}, which is {connections[alias].display_name}.",
                    "All shards are PostgreSQL.",
                )
            )
    if not _has_router():
        found.append(
            (
                f"{place} needs TenantQueueRouter as the first of DATABASE_ROUTERS.",
                "Put 'django_tenantqueue.routers.TenantQueueRouter' first.",
            )
        )
    return found


def _has_router() -> bool:
    first = next(iter(django_settings.DATABASE_ROUTERS), None)
    kind = import_string(first) if isinstance(first, str) else type(first)
    return isinstance(kind, type) and issubclass(kind, TenantQueueRouter)


def check_set_up(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """E021: a database is not set up as SHARDS says. Also the checks of the jobs' database."""
    try:
        if are_sharded() and _problems():
            return []  # E020
    except InvalidOption:
        return []  # E001
    found: list[CheckMessage] = []
    for number, alias in enumerate(aliases()):
        if alias not in (databases or ()):
            continue
        if number:
            with database(alias):
                found += check_database(databases=[alias])
        try:
            # a test runner checks before the tests set up their databases
            text = None if _are_tests() else find_problem(alias)
        except DatabaseError:
            continue  # W006
        if text is not None:
            text = f"{text[0].upper()}{text[1:]}."
            found.append(Error(text, hint="See docs/howto/shards.md.", id="tenantqueue.E021"))
    return found


def _are_tests() -> bool:
    """Whether Django's test runner, or pytest-django, has prepared this process."""
    return hasattr(mail, "outbox")


def find_problem(alias: str) -> str | None:
    """Return why a database cannot be used as SHARDS says; None: it can, or is not migrated."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT to_regclass('tenantqueue_shard') IS NULL")
        if cursor.fetchone()[0]:
            return None  # `migrate` checks first
    if not are_sharded():
        if not Shard.objects.using(alias).exists():
            return None
        return (
            f"the database {alias!r} is one of several shards, and SHARDS has fewer than two "
            "aliases: jobs of all tenants would go to it. Name all databases. If it is meant to be "
            "the only one, delete the row of tenantqueue_shard"
        )
    try:
        pins_of(alias, list(aliases()).index(alias))
    except Unsupported as error:
        return str(error)
    return None
