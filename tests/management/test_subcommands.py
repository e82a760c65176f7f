"""manage.py tenantqueue: its list, its errors, and the subcommands that apps add."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command, execute_from_command_line
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection

from django_tenantqueue.exceptions import InvalidArgument
from django_tenantqueue.features import Feature
from django_tenantqueue.management.commands.tenantqueue import CORE, subcommands
from django_tenantqueue.management.subcommand import Subcommand
from django_tenantqueue.operations.actor import Actor, current_actor
from tests.factories import make_queue

Install = Callable[[Feature], None]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code and what was printed."""
    with pytest.raises(SystemExit) as left:
        execute_from_command_line(["manage.py", "tenantqueue", *arguments])
    printed = capsys.readouterr()
    return int(left.value.code or 0), printed.out + printed.err


def test_list_has_a_line_for_each_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "--help")

    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert code == 0
    for name, kind in subcommands().items():
        assert f"{name} {kind.help}" in lines
    names = [line for line in lines if line.startswith("schedules ")]
    assert len(names) == 3


def test_verbs_of_a_noun_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "schedules", "--help")

    assert code == 0
    assert "  import-beat  Import the periodic tasks of django-celery-beat" in text


def test_help_of_a_subcommand_has_its_options_and_those_of_django(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = said(capsys, "status", "--help")

    assert code == 0
    assert text.startswith("usage: manage.py tenantqueue status [-h]")
    assert "Show the workers, what they run" in text
    assert text.index("--jobs NUMBER") < text.index("--settings SETTINGS")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a subcommand: `manage.py tenantqueue --help` lists them"),
        (["statsu"], "there is no subcommand 'statsu': did you mean 'status'?"),
        (["shedules", "list"], "did you mean 'schedules'? `manage.py tenantqueue --help` lists"),
        (["celery-reprot"], "did you mean 'celery-report'?"),
        (["zzz"], "there is no subcommand 'zzz': `manage.py tenantqueue --help` lists them"),
        (["schedules"], "the following arguments are required: SUBCOMMAND"),
        (["schedules", "snyc"], "did you mean 'sync'? `manage.py tenantqueue schedules --help`"),
        (["status", "--jsno"], "manage.py tenantqueue status: error: unrecognized arguments"),
        (["status", "--format=csv"], "argument --format: invalid choice: 'csv'"),
    ],
)
def test_wrong_command_line_says_what_is_right(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = said(capsys, *arguments)

    assert code == 2
    assert message in text


class Greet(Subcommand):
    """Prints what it was given."""

    help = "Greet someone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["name"] == "no one":
            raise InvalidArgument("there is no one: name someone")
        if options["name"] == "the server":
            raise DatabaseError("it is gone")
        assert current_actor() == Actor("deploy", "command")
        self.stdout.write(f"{options['verbosity']} {options['name']}")


class Greeting(Feature):
    def __init__(self, name: str = "guests greet") -> None:
        self.name = name

    def commands(self) -> Mapping[str, type[BaseCommand]]:
        return {self.name: Greet}


@pytest.fixture
def greet(install: Install, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    install(Greeting())
    monkeypatch.setattr("getpass.getuser", lambda: "deploy")

    def greet(*arguments: str, **options: Any) -> str:
        out = StringIO()
        call_command("tenantqueue", *arguments, stdout=out, **options)
        return out.getvalue()

    return greet


@pytest.mark.parametrize(
    ("arguments", "verbosity"),
    [
        (["guests", "greet", "--name=eve"], 1),
        (["guests", "greet", "--name=eve", "-v0"], 0),
        (["-v0", "guests", "greet", "--name=eve"], 0),
        (["-v0", "guests", "greet", "--name=eve", "--verbosity=2"], 2),
    ],
)
def test_subcommand_of_an_app_gets_its_options_and_those_of_django(
    greet: Callable[..., str], arguments: list[str], verbosity: int
) -> None:
    assert greet(*arguments) == f"{verbosity} eve\n"


def test_code_gives_options_by_name(greet: Callable[..., str]) -> None:
    assert greet("guests", "greet", name="eve") == "1 eve\n"
    with pytest.raises(TypeError, match="Unknown option"):
        greet("guests", "greet", name="eve", nmae="eve")


def test_what_is_refused_has_exit_code_1(greet: Callable[..., str]) -> None:
    with pytest.raises(CommandError, match="there is no one: name someone") as refused:
        greet("guests", "greet", name="no one")
    assert refused.value.returncode == 1

    with pytest.raises(CommandError, match="'default' cannot be used: it is gone") as refused:
        greet("guests", "greet", name="the server")
    assert refused.value.returncode == 1


@pytest.mark.django_db
def test_role_without_a_right_is_told_apart_from_a_server_that_is_gone() -> None:
    make_queue("acme")
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE tenantqueue_reader")
        cursor.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO tenantqueue_reader")
        cursor.execute("SET LOCAL ROLE tenantqueue_reader")

    with pytest.raises(
        CommandError, match=r"(?s)lacks a right: .*permission denied.*GRANT it"
    ) as got:
        call_command("tenantqueue", "pause", tenant="acme")

    assert got.value.returncode == 1


@pytest.mark.parametrize("name", ["status", "prune", "status all"])
def test_name_that_another_one_has_is_an_error(install: Install, name: str) -> None:
    install(Greeting(name))

    with pytest.raises(ImproperlyConfigured, match=f"another subcommand {name!r}"):
        subcommands()


def test_no_argument_has_the_name_of_an_option() -> None:
    """call_command(…, queue="mail") would take the one for the other."""
    arguments, options = set(), set()
    for kind in subcommands().values():
        parser = ArgumentParser()
        kind().add_arguments(parser)
        for action in parser._actions:
            (options if action.option_strings else arguments).add(action.dest)

    assert not arguments & options


@pytest.mark.usefixtures("core_alone")
def test_core_has_its_own_subcommands_alone() -> None:
    assert subcommands() == CORE
