"""System checks: tenantqueue.E0xx are errors, W0xx warnings."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning
from django.db import DatabaseError, connections, router
from django.db.models import ForeignKey, Model
from django.utils.module_loading import import_string

from .calls.context import blocking_wrappers, check_coroutine
from .calls.sources import registered_tasks
from .conf import all_settings, get_settings, place_of, unread_settings
from .exceptions import InvalidOption, NotAllowed
from .features import Feature, hooks
from .queries.pooler import is_transaction_pooler
from .schema import find_difference
from .settings import Rules, Settings

OLDEST_SERVER = 150000
CONTEXT, WRAPPERS = place_of("", "CONTEXT"), place_of("", "WRAPPERS")


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """E001: a setting is wrong. E002: the database is not PostgreSQL. E003: a cache is unknown.
    E004: a dotted path cannot be used. E008: times are naive. E013: an executor cannot be used.
    W022: a setting is written outside of TENANTQUEUE."""
    try:
        settings = get_settings()
    except InvalidOption as error:
        wrong = Error(str(error), hint="See docs/reference/settings.md.", id="tenantqueue.E001")
        return [wrong, *_check_unread()]
    return [
        *_check_unread(),
        *_check_backend(settings),
        *_check_caches(settings),
        *_check_paths(),
        *_check_callables(settings),
        *_check_executors(settings),
        *_check_time_zones(),
    ]


def _check_unread() -> list[CheckMessage]:
    return [
        Warning(
            f"The setting {name} is not read: settings are keys of the dict TENANTQUEUE.",
            hint=f"Write {told}. See docs/reference/settings.md.",
            id="tenantqueue.W022",
        )
        for name, told in unread_settings().items()
    ]


def _check_backend(settings: Settings) -> list[CheckMessage]:
    alias = settings.database
    if alias not in connections.settings:
        return [
            Error(
                f"TENANTQUEUE['DATABASE'] is {alias!r}, which is not in DATABASES.",
                hint=f"DATABASES has {', '.join(sorted(connections.settings))}. See "
                "docs/howto/server.md.",
                id="tenantqueue.E002",
            )
        ]
    if connections[alias].vendor != "postgresql":
        return [
            Error(
                f"The database {alias!r} is {connections[alias].display_name}: "
                "django_tenantqueue needs PostgreSQL 15 or later.",
                hint="Use django.db.backends.postgresql, or name another alias in "
                "TENANTQUEUE['DATABASE']. See docs/howto/server.md.",
                id="tenantqueue.E002",
            )
        ]
    return []


def _check_caches(settings: Settings) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for name in ("result_store", "large_result_store"):
        place, value = place_of("", name.upper()), getattr(settings, name)
        if value is None:
            continue
        if value not in django_settings.CACHES:
            found.append(
                Error(
                    f"{place} is {value!r}, which is not in CACHES.",
                    hint=f"CACHES has {', '.join(sorted(django_settings.CACHES))}. See "
                    "docs/howto/large-results.md.",
                    id="tenantqueue.E003",
                )
            )
        elif "locmem" in django_settings.CACHES[value].get("BACKEND", ""):
            found.append(
                Warning(
                    f"{place} is {value!r}, a cache inside one process: other processes will not "
                    "find the results there.",
                    hint="Use a shared cache. See docs/howto/large-results.md.",
                    id="tenantqueue.W003",
                )
            )
    return found


def _check_paths() -> list[CheckMessage]:
    found: list[CheckMessage] = []
    named = [(each, made) for made in all_settings() for each in fields(made)]
    for field, made in named:
        place, takes = _place(made, field), field.metadata.get("rules", Rules()).takes
        if takes is None and place != CONTEXT:
            continue
        value = getattr(made, field.name)
        for path in [value] if isinstance(value, str) else value or ():
            try:
                found_object = import_string(path)
                if takes is None:
                    for needed in ("key", "capture", "apply"):
                        getattr(found_object, needed)
                else:
                    _check_callable(found_object, (None,) * takes)
                    if place == WRAPPERS:
                        _check_context_manager(found_object)
            except (ImportError, AttributeError, TypeError) as error:
                found.append(
                    Error(
                        f"{place} names {path!r}, which cannot be used: {error}",
                        hint=f"Give the dotted path of {_wanted(place, takes)}. See "
                        "docs/reference/settings.md.",
                        id="tenantqueue.E004",
                    )
                )
    return found


def _place(made: Any, field: Field[Any]) -> str:
    return place_of(made.group, field.name.upper())


def _wanted(place: str, takes: int | None) -> str:
    if takes is None:
        return "a class with key, capture and apply"
    if place == WRAPPERS:
        return "a callable that takes the running job and returns a context manager"
    return f"a callable that takes {'one argument' if takes else 'no arguments'}"


def _check_callables(settings: Settings) -> list[CheckMessage]:
    """Import the entries of CALLABLES; of an entry with a wildcard, the part before it."""
    found: list[CheckMessage] = []
    for listed in settings.callables:
        before = re.split(r"[*?[]", listed)[0]
        path = listed if before == listed else before.rpartition(".")[0]
        try:
            if path:
                pkgutil.resolve_name(path)
        except (ImportError, AttributeError, ValueError) as error:
            found.append(
                Error(
                    f"TENANTQUEUE['CALLABLES'] lists {listed!r}, which cannot be imported: {error}",
                    hint="Give the dotted path of a function or method, or of a module or class "
                    "followed by '.*'. See docs/howto/enqueue-methods.md.",
                    id="tenantqueue.E004",
                )
            )
    return found


def _check_executors(settings: Settings) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for name, entry in settings.executors.items():
        try:
            import_string(entry.backend)(name, entry.options)
        except (ImportError, InvalidOption, TypeError) as error:
            missing = getattr(error, "name", None) == "celery"
            found.append(
                Error(
                    f"TENANTQUEUE['EXECUTORS'][{name!r}] cannot be used: {error}",
                    hint="Install it with `pip install 'django-tenantqueue[celery]'`. See "
                    "docs/howto/celery-executor.md."
                    if missing
                    else "Give the dotted path of a subclass of "
                    "django_tenantqueue.executors.RemoteExecutor as BACKEND, and its own OPTIONS. "
                    "See docs/howto/celery-executor.md.",
                    id="tenantqueue.E013",
                )
            )
    return found


def _check_callable(found: Any, arguments: tuple[Any, ...]) -> None:
    if not callable(found):
        raise TypeError(f"{found!r} is not callable")
    try:
        signature = inspect.signature(found)
    except ValueError:  # of a callable written in C
        return
    signature.bind(*arguments)


def _check_context_manager(found: Any) -> None:
    if isinstance(found, type) and not hasattr(found, "__enter__"):
        raise TypeError(f"{found!r} is not a context manager")


def _check_time_zones() -> list[CheckMessage]:
    if django_settings.USE_TZ:
        return []
    return [
        Error(
            "USE_TZ is False: django_tenantqueue needs aware times.",
            hint="Set USE_TZ = True, which is Django's default. See docs/reference/checks.md.",
            id="tenantqueue.E008",
        )
    ]


def check_routers(**kwargs: Any) -> list[CheckMessage]:
    """E015: the models, or those of an app that adds to the package, are read from another database
    than TENANTQUEUE["DATABASE"], or their tables are not made there. W015: migrations of a database
    that is not PostgreSQL include ours."""
    try:
        alias = get_settings().database
    except InvalidOption:
        return []  # E001
    if alias not in connections.settings:
        return []  # E002
    job = apps.get_model("tenantqueue", "Job")
    found = _misrouted(alias, [job])
    if not found:  # else those of the apps would only repeat it
        tables = [*hooks(Feature.tenant_tables), *hooks(Feature.fleet_tables)]
        found = _misrouted(alias, [model for hook in tables for model in hook()])
    hint = (
        "Put 'django_tenantqueue.routers.TenantQueueRouter' first in DATABASE_ROUTERS. It knows an "
        "app of your own by a label that begins with 'tenantqueue_'. See docs/reference/apps.md."
    )
    others = (connections[other] for other in connections if other != alias)
    return [
        *(
            Error(
                f"The models of {problem}, and TENANTQUEUE['DATABASE'] is {alias!r}.",
                hint=hint,
                id="tenantqueue.E015",
            )
            for problem in found
        ),
        *(
            Warning(
                f"The database {other.alias!r} is {other.display_name}: the migrations of "
                "django_tenantqueue create no tables there.",
                hint=hint,
                id="tenantqueue.W015",
            )
            for other in others
            if other.vendor not in ("postgresql", "unknown")
            and router.allow_migrate_model(other.alias, job)
        ),
    ]


def _misrouted(alias: str, models: Sequence[type[Model]]) -> list[str]:
    """Return which apps have models whose database is not `alias`, and why."""
    found: list[str] = []
    for model in models:
        app = model._meta.app_config.name
        # a router may choose among replicas each time
        ways = (router.db_for_read, router.db_for_write)
        used = {find(model) for find in ways for _ in range(20)}
        found += (f"{app} use the database {other!r}" for other in sorted(used - {alias}))
        if not router.allow_migrate_model(alias, model):
            found.append(f"{app} have no tables in the database {alias!r}")
    return [*dict.fromkeys(found)]


def check_coroutines(**kwargs: Any) -> list[CheckMessage]:
    """E014: a task is a coroutine, and a wrapper does not support coroutines."""
    try:
        if not blocking_wrappers():
            return []
    except InvalidOption:
        return []  # E001, E004
    found: list[CheckMessage] = []
    for task in registered_tasks().values():
        try:
            if task.is_async:
                check_coroutine(task.name)
        except NotAllowed as error:
            found.append(
                Error(
                    f"Task {error}.",
                    hint="See docs/howto/request-context.md.",
                    id="tenantqueue.E014",
                )
            )
    return found


def check_references(**kwargs: Any) -> list[CheckMessage]:
    """E005: a foreign key to Job with a constraint, which a partitioned table cannot have."""
    job = apps.get_model("tenantqueue", "Job")
    return [
        Error(
            f"{field} references Job with a database constraint: jobs move between partitions.",
            hint="Declare it with db_constraint=False and on_delete=models.DO_NOTHING. See "
            "docs/howto/foreign-keys.md.",
            obj=field,
            id="tenantqueue.E005",
        )
        for model in apps.get_models()
        for field in model._meta.local_fields
        if isinstance(field, ForeignKey)
        and field.related_model is job
        and getattr(field, "db_constraint", True)
    ]


def check_database(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """E006: the server is too old. E007: the job table was not made by our migrations.
    E009: a transaction pooler that is not declared. W006: the server cannot be reached. W013: a
    queue has an executor that the settings do not know. W016: the encoding is not UTF8. W017: the
    role cannot make partitions. E018: other migrations have made the tables."""
    try:
        alias = get_settings().database
    except InvalidOption:
        return []  # E001
    if alias not in (databases or ()) or connections[alias].vendor != "postgresql":
        return []
    try:
        return _check_server(alias)
    except DatabaseError as error:
        return [
            Warning(
                f"The jobs' database {alias!r} cannot be reached: {str(error).strip()}",
                hint="Is PostgreSQL running? See docs/howto/server.md.",
                id="tenantqueue.W006",
            )
        ]


def _check_server(alias: str) -> list[CheckMessage]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int")
        version = cursor.fetchone()[0]
        if version < OLDEST_SERVER:
            return [
                Error(
                    f"The server of {alias!r} is PostgreSQL {version // 10000}: 15 is the oldest "
                    "supported.",
                    hint="Upgrade the server. See docs/howto/server.md.",
                    id="tenantqueue.E006",
                )
            ]
        cursor.execute("SELECT relkind FROM pg_class WHERE oid = to_regclass('tenantqueue_job')")
        row = cursor.fetchone()
    if row is not None and row[0] != "p":
        return [
            Error(
                "The table tenantqueue_job is not partitioned.",
                hint="It was not made by the migrations of django_tenantqueue (syncdb, or a test "
                "with MIGRATION_MODULES off): drop it and run `manage.py migrate tenantqueue`. See "
                "docs/reference/checks.md.",
                id="tenantqueue.E007",
            )
        ]
    if row is not None and (difference := find_difference(alias)):
        return [
            Error(
                f"The tables of {alias!r} are not those of this version: {difference}.",
                hint="A version whose migrations have been rewritten since has created them. Drop "
                "them with `manage.py migrate tenantqueue zero` of that version, then migrate. See "
                "docs/reference/checks.md.",
                id="tenantqueue.E018",
            )
        ]
    if not get_settings().pooler and is_transaction_pooler(alias):
        return [
            Error(
                f"The connections of {alias!r} go through a pooler that gives each transaction "
                "another session (PgBouncer in transaction mode), and TENANTQUEUE['POOLER'] is "
                "not set: prepared statements and workers' locks would be lost.",
                hint="Set TENANTQUEUE['POOLER'] = True in all processes that go through it, or "
                "let them connect to PostgreSQL directly. See docs/howto/deployment.md.",
                id="tenantqueue.E009",
            )
        ]
    found = _check_encoding(alias)
    if row is not None:
        found += [*_check_owner(alias), *_check_executors_of_queues(alias)]
    return found


def _check_owner(alias: str) -> list[CheckMessage]:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT current_user, pg_get_userbyid(c.relowner), n.nspname, "
            "pg_has_role(current_user, c.relowner, 'MEMBER'), "
            "has_schema_privilege(c.relowner, n.oid, 'CREATE') "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.oid = 'tenantqueue_job_history'::regclass"
        )
        role, owner, schema, is_member, may_create = cursor.fetchone()
    if is_member and may_create:
        return []
    what = (
        f"{owner!r}, which owns the tables, may not create any in the schema {schema!r}"
        if is_member
        else f"{role!r} is not a member of {owner!r}, which owns the tables"
    )
    grant = f"CREATE ON SCHEMA {schema} TO {owner}" if is_member else f"{owner} TO {role}"
    return [
        Warning(
            f"The role {what}: workers that connect as {role!r} cannot create the partitions of "
            "the coming months.",
            hint=f"GRANT {grant}. Ignore this warning where no worker runs. See "
            "docs/howto/deployment.md.",
            id="tenantqueue.W017",
        )
    ]


def _check_encoding(alias: str) -> list[CheckMessage]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT getdatabaseencoding()")
        encoding = cursor.fetchone()[0]
    if encoding == "UTF8":
        return []
    return [
        Warning(
            f"The encoding of the database {alias!r} is {encoding}: a job whose arguments, result "
            "or error contain a character outside of this encoding cannot be stored.",
            hint="Create the database with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0. "
            "See docs/reference/checks.md.",
            id="tenantqueue.W016",
        )
    ]


def _check_executors_of_queues(alias: str) -> list[CheckMessage]:
    known = get_settings().executors
    with connections[alias].cursor() as cursor:
        # the column may not be there yet: `migrate` checks first
        cursor.execute(
            "SELECT DISTINCT to_jsonb(q) ->> 'executor' FROM tenantqueue_tenantqueue q "
            "WHERE to_jsonb(q) ->> 'executor' IS NOT NULL"
        )
        unknown = sorted(name for (name,) in cursor.fetchall() if name not in known)
    return [
        Warning(
            f"There are queues with the executor {name!r}, which TENANTQUEUE['EXECUTORS'] does "
            "not have: none of their jobs start.",
            hint="Add it to the settings, or give these queues another executor in the admin. See "
            "docs/howto/celery-executor.md.",
            id="tenantqueue.W013",
        )
        for name in unknown
    ]
