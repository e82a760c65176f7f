"""What a user can name is documented, and what the documentation shows can be run."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from argparse import SUPPRESS
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.dispatch import Signal

import django_tenantqueue
from django_tenantqueue import conf, exceptions, pytest_plugin, signals, states, tasks, testing
from django_tenantqueue.calls.options import NAMES, OF_TASKS
from django_tenantqueue.conf import read_settings
from django_tenantqueue.contrib.alerts import services as alert_rules
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.api import tokens
from django_tenantqueue.contrib.api.models import ApiToken, IdempotencyKey
from django_tenantqueue.contrib.celery import executor
from django_tenantqueue.contrib.django_tasks import backend
from django_tenantqueue.contrib.fireworq.models import FireworqQueue
from django_tenantqueue.contrib.prometheus.models import FigureTotal
from django_tenantqueue.contrib.retention import operations as retention_rules
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.contrib.routing import services as routing
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules import services as schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.groups import DEFAULTS
from django_tenantqueue.models import (
    Change,
    ConcurrentJobMonitor,
    Duty,
    Job,
    MonitorAddition,
    MonitorPace,
    QueueRate,
    Session,
    TaskControl,
    TaskRate,
    TenantQueue,
    UniqueKey,
    Worker,
)
from django_tenantqueue.models.job_query import JobQuerySet
from django_tenantqueue.operations import (
    actor,
    control,
    maintain,
    monitor_control,
    task_control,
    worker_control,
)
from django_tenantqueue.status import changes, workers
from django_tenantqueue.web.views import describe_job

NEEDS = "alerts api celery fireworq http prometheus retention routing schedules"
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PACKAGE = Path(django_tenantqueue.__file__).parent
LAYERS = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "benchmarks/README.md",
        *(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
    ]
)


sys.path.insert(0, str(DOCS / "_ext"))
from_code = importlib.import_module("from_code")
sys.path.pop(0)
MODELS = (
    Alert,
    ApiToken,
    IdempotencyKey,
    AlertRule,
    Change,
    Job,
    TenantQueue,
    QueueRate,
    FireworqQueue,
    RetentionRule,
    Routing,
    Schedule,
    Session,
    TaskControl,
    TaskRate,
    UniqueKey,
    Worker,
    Duty,
    FigureTotal,
    ConcurrentJobMonitor,
    MonitorAddition,
    MonitorPace,
)
MEMBER = type(vars(RunningJob)["tenant"])
"""The type of a slot."""


@cache
def text_of(page: str) -> str:
    return (DOCS / page).read_text()


def assert_named(page: str, names: Any) -> None:
    """Fail when one of `names` does not stand in backquotes (or in a signature) on a page."""
    text = text_of(page)
    found = re.findall(r"`([^`\n]+)`|^```\{py:\w+\} (.+)$", text, re.MULTILINE)
    spans = " ".join(first or second for first, second in found)
    words = set(re.findall(r"[\w.\-]+", spans)) | set(re.findall(r"\w+", spans))
    missing = [name for name in names if name not in words]
    assert not missing, f"docs/{page} does not document {missing}"


def public(owner: Any) -> list[str]:
    """Return the names that a class itself defines and users may call."""
    return [name for name in vars(owner) if not name.startswith("_")]


def functions_of(module: ModuleType) -> list[str]:
    return [
        name
        for name, found in vars(module).items()
        if inspect.isfunction(found)
        and found.__module__ == module.__name__
        and not name.startswith("_")
    ]


# everything is there


def test_every_setting_is_documented() -> None:
    known = {kind.group: conf.keys_of(kind) for kind in conf.settings_kinds()}
    for each in from_code.all_settings():
        assert each.text, f"{each.key} has no text below it"
        assert each.why, f"{each.key} does not say why it has its default"
    page = text_of("reference/settings.md")
    shown: dict[str, list[str]] = {}
    for title, table in re.findall(r"^## (.+)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        group = title if title in known else ""
        shown.setdefault(group, []).extend(re.findall(r"^\| `([A-Z_]+)` \|", table, re.M))
    assert shown == known


@pytest.mark.parametrize("name", from_code.commands())
def test_every_command_and_option_is_documented(name: str) -> None:
    own = text_of("reference/runworker.md")
    text = own if name == "runworker" else _section("reference/commands.md", name)
    options = from_code.command_options(name)
    assert "--database" in options or name == "celeryreport"  # which reads code
    for action in own_actions(name):
        assert action.help not in (None, "", SUPPRESS), f"{name} {action.dest} has no help"
        for option in action.option_strings or [action.metavar or action.dest.upper()]:
            row = rf"^\| `{re.escape(str(option))}[ `]"
            assert re.search(row, text, re.M), f"{name} {option} is not documented"
        for choice in action.choices or ():
            assert re.search(rf"\b{choice}\b", text), f"{name} … {choice} is not documented"
    assert "exit code" in text.lower()
    source = from_code.command_source(name).read_text()
    for code in set(re.findall(r"returncode=(\d+)", source)) | {"0"}:
        assert f"| {code} | " in text, f"exit code {code} of {name} is not documented"


def own_actions(name: str) -> list[Any]:
    """Return the options and arguments of a command, without those that Django gives each."""
    command = load_command_class(get_commands()[name], name)
    common = BaseCommand().create_parser("manage.py", name)._option_string_actions
    actions = command.create_parser("manage.py", name)._actions
    return [action for action in actions if not common.keys() & set(action.option_strings)]


def test_every_command_is_in_the_list_of_commands() -> None:
    named = {name for name, app in get_commands().items() if app.startswith("django_tenantqueue")}
    assert named == set(from_code.commands())
    rows = re.findall(r"^\| \[`manage\.py (\w+)`\]", text_of("reference/commands.md"), re.M)
    assert sorted(rows) == sorted(named)


@pytest.mark.parametrize("app", from_code.installed_apps()[1:])
def test_every_app_is_named_in_a_how_to_page(app: str) -> None:
    pages = [page.read_text() for page in (DOCS / "howto").glob("*.md")]
    assert any(f'"{app}"' in page for page in pages), f"no page says to install {app}"


def test_every_key_of_an_executor_is_documented() -> None:
    (text,) = re.findall(r"^\| `EXECUTORS` \|.*$", text_of("reference/settings.md"), re.M)
    for name in conf._ENTRY_KEYS:
        assert f"`{name}`" in text
    for name in (*conf._ENTRY_KEYS, *executor.KNOWN):
        assert f'"{name}": ' in text_of("howto/celery.md")
    assert_named("howto/django-tasks.md", backend.JOB_OPTIONS)


def _section(page: str, command: str) -> str:
    """Return the part of a page about a command; fails when there is none."""
    found = re.search(rf"^## `manage\.py {command}`\n(.*?)(?=^## |\Z)", text_of(page), re.M | re.S)
    assert found, f"docs/{page} does not document {command}"
    return found[1]


def test_every_system_check_is_documented() -> None:
    calls = [
        node
        for path in PACKAGE.rglob("*.py")
        if "django.core.checks" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("CheckMessage", "Critical", "Error", "Info", "Warning")
    ]
    ids = {ast.literal_eval(k.value) for call in calls for k in call.keywords if k.arg == "id"}
    assert all(any(keyword.arg == "id" for keyword in call.keywords) for call in calls)
    rows = re.findall(r"^\| `(.+?)` \| .+ \| .+ \|$", text_of("reference/checks.md"), re.M)
    assert sorted(rows) == sorted(ids)
    assert all(re.fullmatch(r"tenantqueue\.[EW]\d{3}", found) for found in ids)
    numbers = {int(found[-3:]) for found in ids}
    assert numbers == {*range(1, len(numbers) + 1)}


def test_every_system_check_names_a_page_in_its_hint() -> None:
    for path in PACKAGE.rglob("*.py"):
        if "django.core.checks" not in (source := path.read_text()):
            continue
        tree = ast.parse(source)
        named = {
            ast.unparse(node.targets[0]): ast.unparse(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and any(k.arg == "id" for k in node.keywords):
                hint = next(ast.unparse(k.value) for k in node.keywords if k.arg == "hint")
                pages = re.findall(r"See docs/([\w/-]+\.md)", named.get(hint, hint))
                assert pages, f"{path.name}: {hint}"
                assert all((DOCS / page).is_file() for page in pages), pages


def test_every_exception_is_documented() -> None:
    names = [
        name
        for name, found in vars(exceptions).items()
        if inspect.isclass(found) and issubclass(found, exceptions.TenantQueueError)
    ]
    assert_named("reference/exceptions.md", names)


def test_every_statement_says_what_it_does() -> None:
    for path in from_code.statement_files().values():
        assert from_code.sql_head(path), f"{path.name} has no comment at its head"
        assert f"### `{path.name}`" in text_of("reference/sql.md")


def test_every_public_name_is_documented() -> None:
    names = set(django_tenantqueue.__all__)
    in_exceptions = {name for name in names if hasattr(exceptions, name)}
    assert_named("reference/tasks.md", sorted(names))
    assert_named("reference/exceptions.md", sorted(in_exceptions))


def test_every_option_of_a_job_is_documented() -> None:
    own = [
        name for name in inspect.signature(tasks.Task).parameters if name not in ("func", "options")
    ]
    assert_named("reference/tasks.md", [*NAMES, *own])


def test_every_method_of_a_task_is_documented() -> None:
    internal = {"check_arguments", "check_call", "as_call", "wants_retry", "backoff_seconds"}
    names = set(public(tasks.Task)) | set(public(tasks.BoundTask))
    assert_named("reference/tasks.md", sorted(names - internal))


def test_everything_of_the_current_job_is_documented() -> None:
    properties = [n for n in public(RunningJob) if not isinstance(vars(RunningJob)[n], MEMBER)]
    names = [*(set(properties) - {"said", "tell"}), "tenant", "queue", "cancel_requested", "lost"]
    assert_named("reference/tasks.md", sorted(names))


def test_every_priority_is_documented() -> None:
    text = text_of("reference/tasks.md")
    for name, number in vars(states.Priority).items():
        if not name.startswith("_"):
            assert f"`{name}`" in text
            assert name in ("DEFAULT", "LOWEST_NUMBER", "HIGHEST_NUMBER") or (
                f"`{name}` {number}" in text
            )


def test_every_operation_is_documented() -> None:
    assert_named("reference/operations.md", [*functions_of(control), *control.TUNABLE])
    duties = [name for name in functions_of(maintain) if name != "seconds_to_next_due"]
    assert_named("reference/operations.md", duties)
    assert_named("reference/operations.md", functions_of(workers))
    assert_named("reference/operations.md", functions_of(changes))
    actor_names = [*functions_of(actor), "acting_as", *Change.Source.values]
    assert_named("reference/operations.md", actor_names)
    words = (*Change.Action.values, *Change.Kind.values, *Change.Source.values)
    assert_named("reference/models.md", words)
    assert_named("reference/operations.md", functions_of(worker_control))
    assert_named("reference/operations.md", [*functions_of(task_control), *task_control.TUNABLE])
    named = [name for name in functions_of(retention_rules) if name != "add_rule"]
    assert_named("reference/operations.md", [*named, *retention_rules.TUNABLE])
    named = [name for name in functions_of(routing) if name != "add_routing"]
    assert_named("reference/operations.md", [*named, *routing.TUNABLE])
    named = [name for name in functions_of(tokens) if name != "add_token"]
    assert_named("reference/operations.md", [*named, *tokens.TUNABLE])
    internal = {"add_schedule", "columns_of", "set_next", "stored_call", "write_schedule"}
    named = [name for name in functions_of(schedules) if name not in internal]
    assert_named("reference/operations.md", [*named, *schedules.TUNABLE])
    named = [name for name in functions_of(alert_rules) if name != "add_alert_rule"]
    assert_named("reference/operations.md", [*named, *alert_rules.TUNABLE])
    assert_named("reference/operations.md", functions_of(monitor_control))
    assert_named("reference/operations.md", monitor_control.TUNABLE)


def test_every_column_is_documented() -> None:
    for model in MODELS:
        assert_named("reference/models.md", [field.column for field in model._meta.local_fields])


def test_every_property_of_a_job_is_documented() -> None:
    columns = {name for field in Job._meta.fields for name in (field.name, field.attname)}
    inherited = {"objects", "DoesNotExist", "MultipleObjectsReturned", "NotUpdated", "detail"}
    names = {
        name
        for name in [*public(Job), *public(JobQuerySet)]
        if not re.match(r"get_(next_by|previous_by|\w+_display)", name)
    }
    assert_named("reference/models.md", sorted(names - columns - inherited))


def test_every_state_and_transition_is_documented() -> None:
    text = text_of("reference/states.md") + text_of("images/states.svg")
    for old, after in states.TRANSITIONS.items():
        assert f"| `{old.value}` | " in text
        for new in after:
            assert f"| `{old.value}` | `{new.value}` | " in text
            assert f"<title>{old.value} → {new.value}</title>" in text
    ElementTree.fromstring(text_of("images/states.svg"))


def test_every_signal_is_documented() -> None:
    names = [name for name, found in vars(signals).items() if isinstance(found, Signal)]
    assert_named("reference/signals.md", names)


def test_every_testing_helper_is_documented() -> None:
    assert_named("reference/testing.md", testing.__all__)
    assert set(functions_of(testing)) <= set(testing.__all__)
    fixtures = re.findall(r"@pytest\.fixture\ndef (\w+)", inspect.getsource(pytest_plugin))
    assert "run_jobs" in fixtures
    assert_named("reference/testing.md", fixtures)
    assert_named("reference/testing.md", inspect.signature(testing.run_pending).parameters)


def test_every_key_of_the_status_is_documented() -> None:
    (example,) = (
        json.loads(code) for kind, code in snippets(DOCS / "reference/status.md") if kind == "json"
    )
    status = describe_job(Job(pk=1, state="created"))
    assert list(example) == list(status)
    assert list(example["progress"]) == list(status["progress"])


# what is shown works


def snippets(page: Path) -> list[tuple[str, str]]:
    """Return (language, code) of the fenced blocks of a page, those in lists included."""
    found = re.findall(r"^([ \t]*)```(\w+)\n(.*?)^\1```$", page.read_text(), re.M | re.S)
    return [(kind, re.sub(f"^{indent}", "", code, flags=re.M)) for indent, kind, code in found]


PYTHON = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, (kind, code) in enumerate(snippets(page))
    if kind == "python"
]


@pytest.mark.parametrize("code", PYTHON)
def test_snippet_compiles(code: str) -> None:
    compile(code, "snippet", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("code", PYTHON)
def test_snippet_imports_what_exists(code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("django_tenantq"):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                assert hasattr(module, alias.name), f"from {node.module} import {alias.name}"


@pytest.mark.parametrize("code", PYTHON)
def test_snippet_uses_options_that_exist(code: str) -> None:
    if "from django.tasks import task" in code:
        return  # `@task` takes the framework's options there
    for_task = {*NAMES, *OF_TASKS, "executor"}
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        allowed = {"using": {*NAMES, *DEFAULTS}, "task": for_task}.get(name)
        if ast.unparse(node.func).startswith("app."):
            continue  # of another system, in the guides
        for keyword in [each for each in node.keywords if each.arg] if allowed else ():
            assert keyword.arg in allowed, f"{name}({keyword.arg}=…)"


@pytest.mark.parametrize("code", PYTHON)
def test_snippet_shows_valid_settings(code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TENANTQUEUE":
            read_settings(ast.literal_eval(node.value))


@pytest.mark.parametrize("code", PYTHON)
def test_snippet_calls_operations_that_exist(code: str) -> None:
    for module in (
        actor,
        control,
        maintain,
        monitor_control,
        schedules,
        task_control,
        worker_control,
        workers,
    ):
        short = module.__name__.rpartition(".")[2]
        for name in re.findall(rf"\b{short}\.(\w+)\(", code):
            assert hasattr(module, name), f"{short}.{name}()"


def test_files_that_pages_name_exist() -> None:
    for page in PAGES:
        for name in re.findall(r"`([\w/]+\.(?:py|sql))`", page.read_text()):
            if name.split("/")[0] in LAYERS:
                assert (PACKAGE / name).exists(), f"{page.name}: {name}"


def test_functions_that_the_architecture_names_exist() -> None:
    found = re.findall(r"`([\w/]+\.py)`, `(\w+)\(\)`", text_of("explanation/architecture.md"))
    assert found
    for name, function in found:
        assert f"def {function}(" in (PACKAGE / name).read_text(), f"{name}: {function}()"


def test_numbers_of_the_table_are_those_of_the_code() -> None:
    row = re.compile(r"^\| `(\w+)`: `([\w/]+)\.py` \| ([\d,]+) (\w+) \|", re.MULTILINE)
    found = row.findall(text_of("explanation/why.md"))
    assert found
    for name, path, value, unit in found:
        module = importlib.import_module(f"{PACKAGE.name}.{path.replace('/', '.')}")
        shown = int(value.replace(",", ""))
        is_fraction = unit == "ms" and name.endswith("_SECONDS")
        assert getattr(module, name) == (shown / 1000 if is_fraction else shown), name


def test_readme_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target


def test_readme_names_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.M), f"make {target}"


def test_first_screen_of_the_readme_shows_both_commands_and_the_example() -> None:
    first = (ROOT / "README.md").read_text().splitlines()[:40]
    assert any(line.startswith("    make demo") for line in first)
    assert any(line.startswith("    make test") for line in first)
    assert any("runworker" in line for line in first)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_avoids_belittling_words(page: Path) -> None:
    assert re.findall(r"\b(?:simply|just|easily|obviously)\b", page.read_text(), re.I) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_a_page_are_short(page: Path) -> None:
    text = re.sub(r"^([ \t]*)```.*?^\1```$", "", page.read_text(), flags=re.M | re.S)
    long = [line for line in text.splitlines() if len(line) > 100]

    # a row of a table is one line, and so is a link or a picture
    assert [line for line in long if not re.match(r"\||!?\[[^]]*\]\([^)]*\)\S?$", line)] == []


def test_every_picture_of_the_admin_is_shown() -> None:
    source = (DOCS / "screenshots.py").read_text().partition("PRODUCT = (")[0]
    names = re.findall(r'Picture\(\s*"([\w-]+)"', source)
    assert len(names) > 20
    page = (DOCS / "reference/screens.md").read_text()
    for name in names:
        for file in (
            f"{name}.png",
            *(f"{name}{kind}.jpg" for kind in ("-dark", "-420", "-420-dark")),
        ):
            assert (DOCS / "images" / file).exists(), file
            assert f"(../images/{file})" in page, file


def test_pictures_stay_small() -> None:
    assert sum(path.stat().st_size for path in (DOCS / "images").iterdir()) < 9_000_000


def test_marker_of_an_unknown_part_fails() -> None:
    with pytest.raises(KeyError):
        from_code.expand("<!-- from the code: nothing -->\n")


def test_parts_made_from_the_code_are_up_to_date() -> None:
    assert [str(path.relative_to(ROOT)) for path in from_code.stale()] == [], "run `make reference`"


def test_part_that_is_out_of_date_is_found() -> None:
    text = text_of("reference/metrics.md")

    assert from_code.expand(text.replace("| gauge |", "| guess |")) == text
    assert from_code.expand("<!-- from the code: metrics -->\n") in text


def test_files_exist_when_the_architecture_names_them() -> None:
    named = re.findall(
        r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sql))`", text_of("explanation/architecture.md")
    )

    assert len(named) > 40
    assert [name for name in named if not (PACKAGE / name).exists()] == []
