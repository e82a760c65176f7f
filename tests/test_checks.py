"""System checks: each configuration mistake has an id, says what is wrong and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.checks import Error
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import connection, models
from django.db.utils import OperationalError
from django.test import override_settings
from django.test.utils import isolate_apps

from django_tenantqueue import checks
from django_tenantqueue.calls import sources
from django_tenantqueue.models import Job
from django_tenantqueue.queries import pooler
from tests.databases import SQLITE, other_database, settings_of, url_of_schema
from tests.factories import make_queue
from tests.testapp import tasks

CELERY = "django_tenantqueue.contrib.celery.CeleryExecutor"


def found(function: Any, **options: Any) -> list[tuple[str, str]]:
    return [(message.id, message.msg) for message in function(**options)]


def test_nothing_is_found_when_the_settings_are_right():
    assert checks.check_settings() == []
    assert checks.check_references() == []


@pytest.mark.parametrize(
    ("settings", "number", "said"),
    [
        ({"DEFAULT_QUEU": "x"}, "E001", "did you mean TENANTQUEUE['DEFAULT_QUEUE']"),
        ({"MASKED_ARGUMENTS": ["password", ""]}, "E001", "TENANTQUEUE['MASKED_ARGUMENTS'] has ''"),
        (
            {"DATABASE": "jobs"},
            "E002",
            "TENANTQUEUE['DATABASE'] is 'jobs', which is not in DATABASES.",
        ),
        *(
            ({name: "nowhere"}, "E003", f"['{name}'] is 'nowhere', which is not in CACHES")
            for name in ("RESULT_STORE", "LARGE_RESULT_STORE")
        ),
        *(
            ({"CALLABLES": [listed]}, "E004", f"lists {listed!r}, which cannot be imported")
            for listed in (
                *("nope.nope", "tests.sample_tasks.nope"),
                *("nope.*", "tests.sample_tasks.Nope.*"),
            )
        ),
        *(
            (settings, "E004", "which cannot be used")
            for settings in (
                {"TENANT_RESOLVER": "tests.nowhere.resolver"},
                {"WRAPPERS": ["tests.sample_tasks.nothing"]},
                {"CONTEXT": ["nothing"]},
                {"TENANT_RESOLVER": "os.sep"},
                {"TENANT_RESOLVER": "os.path.join"},
                {"WRAPPERS": ["decimal.Decimal"]},
            )
        ),
    ],
    ids=str,
)
def test_setting_is_found_when_it_is_wrong(settings, number, said):
    with override_settings(TENANTQUEUE=settings):
        ((found_number, message),) = found(checks.check_settings)

    assert found_number == f"tenantqueue.{number}"
    assert said in message


@override_settings(TENANTQUEUE={"DEFAULT_QUEU": 3})
def test_other_checks_are_silent_when_the_settings_are_wrong():
    assert checks.check_database(databases=["default"]) == []


@override_settings(TENANTQUEUE={"DEFAULT_QUEU": 3})
def test_project_does_not_start_when_a_setting_is_unknown():
    with pytest.raises(SystemCheckError, match="DEFAULT_QUEU"):
        call_command("check")


CALLABLES = ("tests.sample_tasks.listed_function", "tests.sample_tasks.Tools.*", "tests.*", "*")


@override_settings(TENANTQUEUE={"CALLABLES": [*CALLABLES, "tests.sample_tasks.list*", "os.*"]})
def test_callables_pass_when_they_are_there():
    assert found(checks.check_settings) == []


@override_settings(TENANTQUEUE={"DATABASE": "lite"})
def test_sqlite_is_found_when_it_is_to_hold_the_jobs():
    with other_database("lite", SQLITE):
        ((number, message),) = found(checks.check_settings)
        assert checks.check_database(databases=["lite"]) == []

    assert number == "tenantqueue.E002"
    assert "'lite' is SQLite: django_tenantqueue needs PostgreSQL 15 or later" in message


@override_settings(TENANTQUEUE={"RESULT_STORE": "default"})
def test_cache_is_warned_of_when_other_processes_do_not_see_it():
    assert [number for number, _ in found(checks.check_settings)] == ["tenantqueue.W003"]


@override_settings(USE_TZ=False)
def test_naive_times_are_found_when_the_project_uses_them():
    assert found(checks.check_settings) == [
        ("tenantqueue.E008", "USE_TZ is False: django_tenantqueue needs aware times.")
    ]


@isolate_apps("tests.testapp")
def test_foreign_key_is_found_when_it_has_a_constraint(monkeypatch):
    class Wrong(models.Model):
        job = models.ForeignKey(Job, on_delete=models.CASCADE)

        class Meta:
            app_label = "testapp"

    class Right(models.Model):
        job = models.ForeignKey(
            Job, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
        )

        class Meta:
            app_label = "testapp"

    monkeypatch.setattr(checks.apps, "get_models", lambda: [Wrong, Right])
    ((number, message),) = found(checks.check_references)

    assert number == "tenantqueue.E005"
    assert "testapp.Wrong.job references Job with a database constraint" in message


@pytest.mark.django_db
def test_nothing_is_found_when_the_database_is_right():
    assert checks.check_database(databases=["default"]) == []
    assert checks.check_database(databases=None) == []


@pytest.mark.django_db
def test_server_is_found_when_it_is_too_old(monkeypatch):
    monkeypatch.setattr(checks, "OLDEST_SERVER", 990000)

    (message,) = checks.check_database(databases=["default"])

    assert isinstance(message, Error)
    assert message.id == "tenantqueue.E006"
    assert message.msg.startswith("The server of 'default' is PostgreSQL ")
    assert message.msg.endswith(": 15 is the oldest supported.")


@pytest.mark.django_db
def test_table_is_found_when_the_migrations_did_not_make_it():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_job RENAME TO was_partitioned")
        cursor.execute("CREATE TABLE tenantqueue_job (id bigint)")

    assert found(checks.check_database, databases=["default"]) == [
        ("tenantqueue.E007", "The table tenantqueue_job is not partitioned.")
    ]


@pytest.mark.django_db
def test_server_is_warned_of_when_it_cannot_be_reached(monkeypatch):
    def refuse(alias):
        raise OperationalError("connection refused")

    monkeypatch.setattr(checks, "_check_server", refuse)

    assert found(checks.check_database, databases=["default"]) == [
        ("tenantqueue.W006", "The jobs' database 'default' cannot be reached: connection refused")
    ]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"BACKEND": "no.such.Executor"}, "No module named 'no'"),
        ({"BACKEND": CELERY, "OPTIONS": {"que": "jobs"}}, "has 'que': known are app, queue"),
        ({"BACKEND": CELERY, "OPTIONS": {"window": 0}}, "'window'\\] is 0: give 1 to 10000"),
        ({"BACKEND": CELERY, "OPTIONS": {"queue": ""}}, "'queue'\\] is '': give the name"),
        ({"BACKEND": CELERY, "OPTIONS": {"app": "no.such.app"}}, "'app'\\] is 'no.such.app'"),
    ],
    ids=str,
)
def test_executor_is_found_when_it_cannot_be_used(entry, said):
    with override_settings(TENANTQUEUE={"EXECUTORS": {"celery": entry}}):
        ((number, message),) = found(checks.check_settings)

    assert number == "tenantqueue.E013"
    assert message.startswith("TENANTQUEUE['EXECUTORS']['celery'] cannot be used: ")
    assert re.search(said, message)


@override_settings(TENANTQUEUE={"EXECUTORS": {"celery": {"BACKEND": CELERY}}})
def test_executor_is_right_without_options():
    assert checks.check_settings() == []


@pytest.mark.django_db
@override_settings(TENANTQUEUE={"EXECUTORS": {"celery": {"BACKEND": CELERY}}})
def test_queue_is_warned_of_when_its_executor_is_not_in_the_settings():
    make_queue("acme", "celery", executor="celery")
    assert checks.check_database(databases=["default"]) == []
    for tenant in ("acme", "globex"):
        make_queue(tenant, "reports", executor="gone")

    ((number, message),) = found(checks.check_database, databases=["default"])

    assert number == "tenantqueue.W013"
    assert message.startswith("There are queues with the executor 'gone', which")


def test_coroutine_task_is_found_when_a_wrapper_may_not_surround_it(monkeypatch):
    monkeypatch.setattr(sources, "_tasks", {"a": tasks.noop, "b": tasks.async_noop})
    assert checks.check_coroutines() == []

    with override_settings(TENANTQUEUE={"WRAPPERS": ["tests.sample_tasks.noting_wrapper"]}):
        ((number, message),) = found(checks.check_coroutines)

    assert number == "tenantqueue.E014"
    assert message.startswith("Task 'tests.testapp.tasks.async_noop' is a coroutine, and")
    with override_settings(TENANTQUEUE={"WRAPPERS": ["tests.sample_tasks.capable_wrapper"]}):
        assert checks.check_coroutines() == []


@pytest.mark.django_db(transaction=True)
def test_database_is_found_when_its_encoding_cannot_store_every_text(server_url):
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    try:
        settings = settings_of(url_of_schema(server_url, "latin", "public"))
        with (
            other_database("latin", settings),
            override_settings(TENANTQUEUE={"DATABASE": "latin"}),
        ):
            ((number, message),) = found(checks.check_database, databases=["latin"])
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP DATABASE latin WITH (FORCE)")

    assert number == "tenantqueue.W016"
    assert message.startswith("The encoding of the database 'latin' is LATIN1: a job whose")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "ALTER TABLE tenantqueue_tenantqueue DROP COLUMN max_waiting",
            "the table 'tenantqueue_tenantqueue' lacks the column 'max_waiting'",
        ),
        ("DROP INDEX tenantqueue_job_due", "it lacks the index 'tenantqueue_job_due'"),
        (
            (
                "INSERT INTO django_migrations (app, name, applied) "
                "VALUES ('tenantqueue', '0000_gone', now())"
            ),
            "it has the migration '0000_gone'",
        ),
    ],
)
def test_database_is_found_when_rewritten_migrations_have_made_it(change, said):
    with connection.cursor() as cursor:
        cursor.execute(change)

    ((number, message),) = found(checks.check_database, databases=["default"])

    assert (number, said in message) == ("tenantqueue.E018", True)
    with pytest.raises(SystemCheckError, match=r"tenantqueue\.E018"):
        call_command("migrate", verbosity=0, skip_checks=False)


@pytest.mark.django_db
def test_database_is_right_when_a_later_version_has_migrated_it():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tenantqueue_job ADD COLUMN later int")
        cursor.execute(
            "INSERT INTO django_migrations (app, name, applied) "
            "VALUES ('tenantqueue', '9000_later', now())"
        )

    assert checks.check_database(databases=["default"]) == []


def test_every_message_has_a_hint_when_it_is_shown():
    with override_settings(TENANTQUEUE={"DATABASE": "jobs", "WRAPPERS": ["x"], "CONTEXT": ["y"]}):
        messages = checks.check_settings()

    assert len(messages) == 3
    assert all(message.hint for message in messages)


class Pooled:
    """A connection of a client of a pooler, which may get a session of another client."""

    def __init__(self, sessions: list[int], told: int) -> None:
        self.in_atomic_block = False
        self.connection = SimpleNamespace(info=SimpleNamespace(backend_pid=told))
        self.sessions = sessions

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        (session, *later) = self.sessions
        self.sessions = later or [session]
        yield SimpleNamespace(execute=lambda _: None, fetchone=lambda: (session,))

    def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("told", "first", "second", "is_transaction_pooler"),
    [
        (7, [7], [], False),  # direct
        (99, [7], [8], False),  # a pooler in session mode
        (99, [7], [7], True),  # the second client gets the session of the first
        (99, [7, 9], [8], True),  # the first client gets another session
        (99, [7], [8, 7], True),  # another client was in between
    ],
)
def test_transaction_pooler_is_told_from_others_by_its_sessions(
    monkeypatch, told, first, second, is_transaction_pooler
):
    client, other = Pooled(first, told), Pooled(second, told)
    client.copy = lambda: other
    monkeypatch.setattr(pooler, "connections", {"default": client})

    assert pooler.is_transaction_pooler("default") == is_transaction_pooler


@pytest.mark.django_db
def test_transaction_pooler_is_found_when_it_is_not_declared(monkeypatch):
    monkeypatch.setattr(checks, "is_transaction_pooler", lambda alias: True)

    ((number, message),) = found(checks.check_database, databases=["default"])

    assert number == "tenantqueue.E009"
    assert "TENANTQUEUE['POOLER'] is not set" in message
    with override_settings(TENANTQUEUE={"POOLER": True}):
        assert found(checks.check_database, databases=["default"]) == []
    with pytest.raises(CommandError, match="POOLER"):
        call_command("runworker", until_empty=True)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("TENANTQUEUE_EAGER", "TENANTQUEUE = {'EAGER': …}, or in a test use eager()"),
        ("TENANTQUEUE_IMMEDIATE", "TENANTQUEUE = {'EAGER': …}"),
        ("TENANTQUEUE_DATABASE", "TENANTQUEUE = {'DATABASE': …}. See"),
    ],
)
@pytest.mark.parametrize("settings", [{}, {"NONE": 1}])
def test_setting_outside_of_the_dict_is_found(monkeypatch, name, written, settings):
    monkeypatch.setattr(django_settings, name, True, raising=False)
    monkeypatch.setattr(django_settings, "TENANTQUEUE_OF_OUR_OWN", True, raising=False)

    with override_settings(TENANTQUEUE=settings):
        unread = [each for each in checks.check_settings() if each.id == "tenantqueue.W022"]

    (warning,) = unread
    assert warning.msg.startswith(f"The setting {name} is not read")
    assert f"Write {written}" in warning.hint
