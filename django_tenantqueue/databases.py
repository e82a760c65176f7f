"""The databases of jobs, where an app such as contrib.shards has several: which one is meant.

Without such an app all functions return the current one: see conf.database().
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from django.db import connections
from django.db.models import Model, QuerySet

from .conf import chosen_database, get_settings, main_database
from .exceptions import InvalidOption
from .features import Feature, hooks


def all_databases() -> Sequence[str]:
    """Return the aliases of all databases with jobs."""
    for of_feature in hooks(Feature.databases):
        if found := of_feature():
            return found
    return [main_database()]


def databases_of_test() -> Sequence[str]:
    """Return the databases that helpers for tests look at: the chosen one, or all."""
    chosen = chosen_database()
    if chosen is not None or not are_several():
        return [get_settings().database]
    return all_databases()


def are_several() -> bool:
    """Whether jobs are in several databases."""
    return bool(hooks(Feature.databases)) and len(all_databases()) > 1


def database_of_tenant(tenant: str) -> str:
    """Return the database of a tenant's jobs. Raises what Feature.choose_database() raises."""
    for choose in hooks(Feature.choose_database):
        if found := choose(tenant):
            return found
    return get_settings().database


def databases_about(tenant: str) -> Sequence[str]:
    """Return the database of a tenant's jobs, then the others, which may have rows about it."""
    home = database_of_tenant(tenant)
    return [home, *(other for other in all_databases() if are_several() and other != home)]


def database_of_id(row_id: int) -> str:
    """Return the database of the job of that id."""
    return _database_of_id(row_id, is_monitor=False)


def database_of_monitor(monitor: Model) -> str:
    """Return the database of a monitor, also if its tenant has moved since it was read."""
    if monitor.pk is None:  # of eager mode
        return database_of_row(monitor)
    return _database_of_id(monitor.pk, is_monitor=True)


def _database_of_id(row_id: int, *, is_monitor: bool) -> str:
    for find in hooks(Feature.find_database):
        if found := find(row_id, is_monitor):
            return found
    return get_settings().database


def database_of_row(row: Model) -> str:
    """Return the database of a row. Of a row from an unknown replica, it is the current one."""
    alias = primary_of(row._state.db)
    if alias is not None and are_several() and alias in all_databases():
        return alias
    return get_settings().database


def primary_of(alias: str | None) -> str | None:
    """Return the primary of a replica that names it as TEST MIRROR; others are their own."""
    known = {} if alias is None else connections.settings.get(alias, {})
    return known.get("TEST", {}).get("MIRROR") or alias


def check_enqueue(using: str, tenant: str, task: str) -> None:
    """Raise TenantQueueError for a job that cannot be enqueued in a database."""
    for check in hooks(Feature.check_enqueue):
        check(using, tenant, task)


def check_queue(using: str, tenant: str) -> None:
    """Raise TenantMoving when a database takes no new queue of a tenant, or no jobs, right now."""
    for check in hooks(Feature.check_queue):
        check(using, tenant)


def check_home(using: str, tenant: str | None) -> None:
    """Raise InvalidOption for a row of a tenant in another database than that of its jobs."""
    if tenant is None or not are_several():
        return
    home = database_of_tenant(tenant)
    if home != using:
        raise InvalidOption(
            f"the jobs of tenant {tenant!r} are in the database {home!r}, not in {using!r}: give "
            f"using={home!r}"
        )


def database_of_call(
    verb: str,
    using: str | None,
    *given: Any,
    monitor: Any = None,
    local: Iterable[Any] = (),
    tenant: str | None = None,
) -> str:
    """Return the database of the rows, ids and tenant that a call names.

    `given`: rows, and ids of jobs. `monitor`: rows and ids of monitors. `local`: rows and ids of
    queues and workers. Each database counts these ids from 1, so an id alone names none.

    A call that names none uses the chosen database: see conf.chosen_database(). Raises
    InvalidOption when none is chosen of several, and for rows of two databases.
    """
    if using is not None or not are_several():
        return using or get_settings().database
    found = {alias for value in given for alias in _databases_of(value, database_of_id)}
    found |= set(_databases_of(monitor, partial(_database_of_id, is_monitor=True)))
    found |= {alias for value in local for alias in _databases_of(value, None)}
    if tenant is not None:
        found.add(database_of_tenant(tenant))
    if len(found) > 1:
        raise InvalidOption(
            f"{verb}() was given rows of the databases {', '.join(map(repr, sorted(found)))}: call "
            "it once for each database"
        )
    if found:
        return found.pop()
    if any(map(_is_empty, (*given, *local))):
        return get_settings().database
    if chosen_database() is None:
        raise InvalidOption(
            f"{verb}() is about rows of one database, and jobs are in "
            f"{', '.join(map(repr, all_databases()))}: give using=, and call it once for each"
        )
    return get_settings().database


def _is_empty(value: Any) -> bool:
    if isinstance(value, QuerySet):
        return bool(value.query.is_empty())
    return isinstance(value, list | tuple | set | frozenset) and not value


def _databases_of(value: Any, of_id: Callable[[int], str] | None) -> Iterable[str]:
    if isinstance(value, QuerySet):
        alias = primary_of(getattr(value, "_db", None))  # of .using()
        return [] if alias is None else [alias]
    found = []
    for one in value if isinstance(value, list | tuple | set | frozenset) else [value]:
        if isinstance(one, Model):
            found.append(database_of_row(one))
        elif of_id is not None and isinstance(one, int) and not isinstance(one, bool):
            found.append(of_id(one))
    return found
