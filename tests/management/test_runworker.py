"""What `manage.py runworker` refuses and says before it starts anything."""

from __future__ import annotations

import logging
import time
from argparse import ArgumentParser
from collections import defaultdict
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command, execute_from_command_line
from django.db import connection
from django.test import override_settings

from django_tenantqueue.management.commands import runworker
from django_tenantqueue.management.commands.runworker import Command, _all, _start_text
from django_tenantqueue.management.variables import near_misses
from django_tenantqueue.worker.config import WorkerConfig
from tests.factories import make_worker


@override_settings(TENANTQUEUE={"DATABASE": "jobs"})
def test_worker_does_not_start_when_the_setting_names_another_database() -> None:
    with pytest.raises(CommandError) as refused:
        call_command("runworker", "--database=default")

    message = str(refused.value)
    assert "--database='default' is not the jobs' database 'jobs'" in message
    assert "leave --database out, or set TENANTQUEUE['DATABASE'] = 'default' " in message
    assert refused.value.returncode == 2


@pytest.mark.django_db
def test_worker_does_not_start_when_the_tables_are_missing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path TO pg_temp")

    with pytest.raises(CommandError, match=r"has `manage\.py migrate` been run\?"):
        call_command("runworker")


@pytest.mark.parametrize("option", ["--queues", "--exclude-queues", "--tenants"])
@pytest.mark.parametrize("value", ["", ",", "a,", " "])
def test_worker_does_not_start_when_a_name_is_empty(option: str, value: str) -> None:
    with pytest.raises(CommandError, match=f"{option}.*has an empty name"):
        call_command("runworker", f"{option}={value}")


def test_names_are_read_when_code_calls_the_command() -> None:
    assert _all("--tenants", ["acme", "a, b", ["c"]]) == ("acme", "a", "b", "c")
    with pytest.raises(CommandError, match="has an empty name"):
        call_command("runworker", tenants=[""])


@pytest.mark.parametrize("value", ["*", "mail,*"])
def test_all_are_taken_when_a_name_is_a_star(value: str) -> None:
    options = {"processes": 1, "dispatch": None, "queues": [value], "tenants": [value]}
    config = Command()._config(defaultdict(lambda: None, options))

    assert (config.queues, config.tenants) == ((), ())
    assert (config.filters.queues, config.filters.tenants) == (None, None)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--queues=mail,reports-*", r"--queues='reports-\*' is a pattern: give whole names, or "),
        ("--tenants=*.example.com", r"--tenants='\*.example.com' is a pattern"),
        ("--exclude-queues=slow-*", r"--exclude-queues='slow-\*' is a pattern"),
        ("--exclude-queues=*", r"--exclude-queues='\*' would leave no queue"),
    ],
)
def test_worker_does_not_start_when_a_name_is_a_pattern(option: str, said: str) -> None:
    with pytest.raises(CommandError, match=said) as refused:
        call_command("runworker", option)

    assert refused.value.returncode == 2


def test_wrong_option_is_exit_code_2(monkeypatch, capsys) -> None:
    with pytest.raises(SystemExit) as left:
        execute_from_command_line(["manage.py", "runworker", "--tenants", ""])

    assert left.value.code == 2
    assert "argument --tenants: '' has an empty name" in capsys.readouterr().err


def test_worker_does_not_start_when_a_queue_is_both_taken_and_left_alone() -> None:
    with pytest.raises(CommandError, match="both name b: leave out one") as refused:
        call_command("runworker", "--queues=a,b", "--exclude-queues=b,c")

    assert refused.value.returncode == 2


def test_worker_does_not_start_when_the_database_is_unknown() -> None:
    with pytest.raises(CommandError, match="--database='x' is not in DATABASES") as refused:
        call_command("runworker", "--database=x")

    assert refused.value.returncode == 2


def test_start_is_told_in_the_singular_when_there_is_one_of_each() -> None:
    one = WorkerConfig("default", "web", processes=1, threads=1, async_slots=1)
    many = WorkerConfig("default", "web", processes=2, threads=8, async_slots=100)

    assert "web: 1 process with 1 thread and 1 coroutine slot. Stop" in _start_text(one)
    text = _start_text(many)
    assert "web: 2 processes, each with 8 threads and 100 coroutine slots. Stop" in text


@pytest.mark.parametrize(("seconds", "side"), [(-60.0, "behind"), (60.0, "ahead of"), (0.0, None)])
@pytest.mark.django_db
def test_clock_that_is_wrong_is_told_at_the_start(
    seconds: float, side: str | None, monkeypatch
) -> None:
    true = time.time
    monkeypatch.setattr("django_tenantqueue.queries.workers.time.time", lambda: true() + seconds)
    command = Command(stderr=StringIO())

    command._warn_of_clock(WorkerConfig("default", "web"))

    told = command.stderr._out.getvalue()
    if side is None:
        assert not told
    else:
        assert f"the clock of this machine is 60.0 s {side} that of the database server" in told


@pytest.mark.django_db
def test_connections_of_all_workers_are_counted_at_the_start() -> None:
    make_worker(threads=5000)
    command = Command(stderr=StringIO())

    command._warn_of_connections(WorkerConfig("default", "web", processes=2, threads=3))

    told = command.stderr._out.getvalue()
    assert "may open 10 database connections and the other workers 5003; the server" in told


@pytest.mark.django_db
@override_settings(TENANTQUEUE={"POOLER": True})
def test_connections_are_not_counted_behind_a_pooler() -> None:
    command = Command(stderr=StringIO())

    command._warn_of_connections(WorkerConfig("default", "web", threads=5000))

    assert not command.stderr._out.getvalue()


@pytest.mark.parametrize(("level", "told"), [(logging.WARNING, True), (logging.INFO, False)])
def test_lines_of_jobs_that_the_setting_drops_are_told(level: int, told: bool, caplog) -> None:
    caplog.set_level(level, "django_tenantqueue")
    command = Command(stderr=StringIO())

    command._warn_of_log(WorkerConfig("default", "web", log_jobs=True))

    assert ("LOGGING drops" in command.stderr._out.getvalue()) is told


def options_of(*arguments: str) -> dict[str, Any]:
    parser = Command().create_parser("manage.py", "runworker")
    return vars(parser.parse_args(arguments))


def test_variables_set_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANTQUEUE_THREADS", "16")
    monkeypatch.setenv("TENANTQUEUE_QUEUES", "mail,reports")
    monkeypatch.setenv("TENANTQUEUE_LOG_JOBS", "1")
    monkeypatch.setenv("TENANTQUEUE_UNTIL_EMPTY", "no")
    monkeypatch.setenv("TENANTQUEUE_SHUTDOWN_TIMEOUT", "2.5")

    options = options_of()

    assert (options["threads"], options["shutdown_timeout"]) == (16, 2.5)
    assert options["queues"] == ["mail", "reports"]
    assert (options["log_jobs"], options["until_empty"]) == (True, False)
    assert options["tenants"] is None


def test_command_line_wins_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANTQUEUE_THREADS", "16")
    monkeypatch.setenv("TENANTQUEUE_QUEUES", "mail,reports")

    options = options_of("--threads=2", "--queues=a,b", "--queues=c")

    assert options["threads"] == 2
    assert options["queues"] == ["a", "b", "c"]


def test_burst_is_another_name_of_until_empty() -> None:
    assert options_of("--burst")["until_empty"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("THREADS", "many", "TENANTQUEUE_THREADS: 'many' is not a whole number"),
        ("THREADS", "", "TENANTQUEUE_THREADS: it is empty: give it a value, or remove it"),
        ("QUEUES", "mail,,reports", "TENANTQUEUE_QUEUES: 'mail,,reports' has an empty name"),
        ("LOG_JOBS", "maybe", "TENANTQUEUE_LOG_JOBS: 'maybe' is neither yes nor no: use 1 or 0"),
        ("RECORDERS", "x", "TENANTQUEUE_RECORDERS: 'x' is not what the option takes"),
        ("RECORDERS", "3", "TENANTQUEUE_RECORDERS: '3' is not one of 1, 2"),
    ],
)
def test_bad_variable_is_named(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runworker, "hooks", lambda hook: [add_recorders])
    monkeypatch.setenv(f"TENANTQUEUE_{name}", value)

    with pytest.raises(CommandError, match=message):
        call_command("runworker")


def test_variables_are_named_when_their_values_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANTQUEUE_QUEUES", "mail-*")

    with pytest.raises(CommandError, match="is a pattern") as refused:
        call_command("runworker")

    assert refused.value.returncode == 2
    assert str(refused.value).endswith("\nThe environment sets TENANTQUEUE_QUEUES")


def add_recorders(parser: ArgumentParser) -> None:
    parser.add_argument("--recorders", type=int, choices=(1, 2))


def test_variable_that_looks_like_an_option_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"TENANTQUEUE_THREADS", "TENANTQUEUE_QUEUES"}
    for name in ("THREADS", "THREAD", "PGBIN", "QUEUE_NAMES"):
        monkeypatch.setenv(f"TENANTQUEUE_{name}", "1")

    (text,) = near_misses(known)
    assert text == (
        "the environment variable TENANTQUEUE_THREAD sets nothing: did you mean "
        "TENANTQUEUE_THREADS?"
    )
