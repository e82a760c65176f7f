"""What a user can name is documented, and what the documentation shows can be run."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from argparse import SUPPRESS
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from django.dispatch import Signal

import django_tenantqueue
from django_tenantqueue import (
    conf,
    control,
    exceptions,
    pytest_plugin,
    reports,
    signals,
    states,
    stored_error,
    tasks,
    testing,
)
from django_tenantqueue.calls.options import NAMES, OF_TASKS
from django_tenantqueue.calls.other_systems import NotHere
from django_tenantqueue.calls.task_hooks import HOOKS
from django_tenantqueue.conf import read_settings
from django_tenantqueue.contrib.alerts import control as alerts_control
from django_tenantqueue.contrib.alerts import services as alert_rules
from django_tenantqueue.contrib.alerts.models import Alert, AlertRule
from django_tenantqueue.contrib.api import control as api_control
from django_tenantqueue.contrib.api import tokens
from django_tenantqueue.contrib.api.models import ApiToken, IdempotencyKey
from django_tenantqueue.contrib.celery import executor
from django_tenantqueue.contrib.django_tasks import backend
from django_tenantqueue.contrib.fireworq.models import FireworqQueue
from django_tenantqueue.contrib.prometheus.models import FigureTotal
from django_tenantqueue.contrib.retention import control as retention_control
from django_tenantqueue.contrib.retention import operations as retention_rules
from django_tenantqueue.contrib.retention.models import RetentionRule
from django_tenantqueue.contrib.routing import control as routing_control
from django_tenantqueue.contrib.routing import services as routing
from django_tenantqueue.contrib.routing.models import Routing
from django_tenantqueue.contrib.schedules import control as schedules_control
from django_tenantqueue.contrib.schedules import services as schedules
from django_tenantqueue.contrib.schedules.models import Schedule
from django_tenantqueue.contrib.shards import control as shards
from django_tenantqueue.contrib.shards.models import Shard, ShardPin
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.groups import DEFAULTS
from django_tenantqueue.management.commands.tenantqueue import subcommands
from django_tenantqueue.models import (
    Change,
    ConcurrentJobMonitor,
    Duty,
    Job,
    MonitorAddition,
    MonitorPace,
    Mute,
    QueueRate,
    Session,
    TaskControl,
    TaskRate,
    TenantQueue,
    UniqueKey,
    Worker,
)
from django_tenantqueue.models.job_query import JobQuerySet
from django_tenantqueue.operations import control as queue_control
from django_tenantqueue.operations import (
    job_verbs,
    maintain,
    monitor_control,
    session_control,
    task_control,
)
from django_tenantqueue.queries.base import statement_files
from django_tenantqueue.web.views import describe_job

NEEDS = "alerts api celery fireworq http prometheus retention routing schedules shards"
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


MAKERS = (
    alerts_control,
    api_control,
    retention_control,
    routing_control,
    schedules_control,
)
TUNABLE = (
    alert_rules.TUNABLE,
    job_verbs.TUNABLE,
    monitor_control.TUNABLE,
    queue_control.TUNABLE,
    retention_rules.TUNABLE,
    routing.TUNABLE,
    schedules.TUNABLE,
    session_control.TUNABLE,
    task_control.TUNABLE,
    tokens.TUNABLE,
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
    Shard,
    ShardPin,
    TaskControl,
    TaskRate,
    UniqueKey,
    Worker,
    Duty,
    FigureTotal,
    ConcurrentJobMonitor,
    MonitorAddition,
    MonitorPace,
    Mute,
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
    return [
        name
        for name, found in vars(owner).items()
        if not name.startswith("_") and not isinstance(found, NotHere)
    ]


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
    for title, table in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S):
        group = title if title in known else ""
        shown.setdefault(group, []).extend(re.findall(r"^\| `([A-Z_]+)` \|", table, re.M))
    assert shown == known


@pytest.mark.parametrize("name", from_code.commands())
def test_every_command_and_option_is_documented(name: str) -> None:
    own = text_of("reference/runworker.md")
    text = own if name == "runworker" else _section("reference/commands.md", name)
    actions = from_code.own_actions(name)
    options = {option for action in actions for option in action.option_strings}
    # one reads code, the others are about all databases
    assert "--database" in options or name.startswith(("celery-report", "shards "))
    for action in actions:
        assert action.help not in (None, "", SUPPRESS), f"{name} {action.dest} has no help"
        if from_code.is_common(name, action):
            continue
        for option in action.option_strings or [action.metavar or action.dest.upper()]:
            assert re.search(rf"`{re.escape(str(option))}[ `]", text), f"{name}: no {option}"
        for choice in action.choices or ():
            assert re.search(rf"\b{choice}\b", text), f"{name} … {choice} is not documented"


def test_every_subcommand_has_one_section() -> None:
    headings = re.findall(r"^## `tenantqueue (.+)`$", text_of("reference/commands.md"), re.M)

    assert headings == list(subcommands())


def test_exit_codes_stand_in_one_table() -> None:
    codes = set()
    for kind in subcommands().values():
        codes |= set(re.findall(r"returncode=(\d+)", inspect.getsource(inspect.getmodule(kind))))
    text = text_of("reference/commands.md")

    assert text.count("| exit code |") == 1
    for code in codes | {"0", "1"}:
        assert f"| {code} | " in text, f"exit code {code} is not documented"


def test_subcommands_exist_when_a_page_names_them() -> None:
    known = subcommands()
    for page in PAGES:
        text = " ".join(page.read_text().split())
        named = re.findall(r"manage\.py tenantqueue ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", text)
        assert [
            words for words in named if words[0] not in known and " ".join(words) not in known
        ] == [], page


@pytest.mark.parametrize("app", from_code.installed_apps()[1:])
def test_every_app_is_named_in_a_how_to_page(app: str) -> None:
    pages = [page.read_text() for page in (DOCS / "howto").glob("*.md")]
    assert any(f'"{app}"' in page for page in pages), f"no page says to install {app}"


def test_every_key_of_an_executor_is_documented() -> None:
    (text,) = re.findall(r"^\| `EXECUTORS` \|.*$", text_of("reference/settings.md"), re.M)
    for name in conf._ENTRY_KEYS:
        assert f"`{name}`" in text
    for name in (*conf._ENTRY_KEYS, *executor.KNOWN):
        assert f'"{name}": ' in text_of("howto/celery-executor.md")
    assert_named("howto/django-tasks.md", backend.JOB_OPTIONS)


def _section(page: str, command: str) -> str:
    """Return the part of a page about a command; fails when there is none."""
    head = rf"^## `(?:manage\.py|tenantqueue) {command}`\n"
    found = re.search(rf"{head}(.*?)(?=^## |\Z)", text_of(page), re.M | re.S)
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
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Error", "Warning"):
                hint = next(ast.unparse(k.value) for k in node.keywords if k.arg == "hint")
                pages = re.findall(r"See docs/([\w/-]+\.md)", named.get(hint, hint))
                assert pages, f"{path.name}: {hint}"
                assert all((DOCS / page).is_file() for page in pages), pages


def all_exceptions() -> dict[str, type[Exception]]:
    """Return the exceptions of the package by name."""
    of_celery = [
        PACKAGE / "contrib/celery/adopted_tasks.py",
        PACKAGE / "contrib/celery/run_claim.py",
    ]
    for path in [*PACKAGE.glob("contrib/*/exceptions.py"), *of_celery]:
        importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    found: dict[str, type[Exception]] = {}
    left: list[type[Exception]] = [exceptions.TenantQueueError]
    while left:
        kind = left.pop()
        if kind.__module__.startswith("django_tenantqueue."):
            found[kind.__name__] = kind
        left += kind.__subclasses__()
    return found


def test_every_exception_is_documented_and_no_other() -> None:
    page = text_of("reference/exceptions.md")
    terms = [re.sub(r" \(a `.*\)$", "", term) for term in re.findall(r"^(`.+)\n: ", page, re.M)]
    named = {name for term in terms for name in re.findall(r"`(\w+)", term)}
    named |= set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert named | {"TenantQueueError"} == {n for n in all_exceptions() if not n.startswith("_")}


def test_names_of_errors_that_are_never_raised_are_documented() -> None:
    page = text_of("reference/exceptions.md")
    for name, text in vars(stored_error).items():
        if name.isupper() and isinstance(text, str):
            assert f"| `{text}` | `{name}` |" in page
            assert text.rpartition(".")[2] not in all_exceptions()


def test_attributes_of_exceptions_are_documented() -> None:
    page = text_of("reference/exceptions.md")
    for name, found in all_exceptions().items():
        if "__init__" in vars(found) and "celery" not in found.__module__:
            own = re.findall(r"self\.([a-z]\w*)(?:: .+)? =", inspect.getsource(found))
            missing = [attribute for attribute in own if f"`{attribute}`" not in page]
            assert not missing, f"{name}: {missing}"


def test_every_statement_says_what_it_does() -> None:
    for path in statement_files().values():
        assert from_code.sql_head(path), f"{path.name} has no comment at its head"


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
    names = set(public(tasks.Task)) | set(public(tasks.BoundTask))
    assert_named("reference/tasks.md", sorted(names))


def test_every_hook_is_documented() -> None:
    text = text_of("reference/tasks.md")
    assert [name for name in HOOKS if f"| `{name}(job" not in text] == []


def test_everything_of_the_current_job_is_documented() -> None:
    properties = [n for n in public(RunningJob) if not isinstance(vars(RunningJob)[n], MEMBER)]
    names = [*properties, "tenant", "queue", "cancel_requested", "lost"]
    assert_named("reference/tasks.md", sorted(names))


def test_every_priority_is_documented() -> None:
    text = text_of("reference/tasks.md")
    for name, number in vars(states.Priority).items():
        if not name.startswith("_"):
            assert f"`{name}`" in text
            assert name in ("DEFAULT", "LOWEST_NUMBER", "HIGHEST_NUMBER") or (
                f"`{name}` {number}" in text
            )


def verbs_of(module: ModuleType) -> list[str]:
    """Return the public names of a module, async twins left out."""
    return [name for name in module.__all__ if name[:1] != "a" or name[1:] not in module.__all__]


def test_every_verb_is_documented() -> None:
    page = "reference/control.md"
    for module in (control, reports, *MAKERS):
        assert_named(page, verbs_of(module))
    for columns in TUNABLE:
        assert_named(page, columns)
    parameters = {
        name
        for verb in verbs_of(control)
        for name in inspect.signature(getattr(control, verb)).parameters
    }
    assert_named(page, sorted(parameters - {"target", "given"}))
    assert_named(page, [*control.Result._fields, *Change.Source.values])
    words = (*Change.Action.values, *Change.Kind.values, *Change.Source.values)
    assert_named("reference/models.md", words)


def test_page_of_verbs_names_nothing_else() -> None:
    known = {name for module in (control, reports, shards, *MAKERS) for name in module.__all__}
    text = text_of("reference/control.md")
    rows = re.findall(r"^\| (?:`contrib\.\w+\.control` \| )?`(\w+)\(", text, re.MULTILINE)
    assert rows
    assert set(rows) <= known


def test_every_duty_is_documented() -> None:
    duties = [name for name in functions_of(maintain) if name != "seconds_to_next_due"]
    assert_named("explanation/maintenance.md", duties)


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
    status = describe_job(Job(pk=1, state="ready"))
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
    for_task = {*NAMES, *OF_TASKS}
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        allowed = {
            "using": {*NAMES, *DEFAULTS},
            "delayed": {*NAMES},
            "task": for_task,
        }.get(name)
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
def test_snippet_calls_verbs_that_exist(code: str) -> None:
    for module in (control, reports):
        short = module.__name__.rpartition(".")[2]
        for name in re.findall(rf"(?<!\.)\b{short}\.(\w+)\(", code):
            assert name in module.__all__, f"{short}.{name}()"


@pytest.mark.parametrize("code", PYTHON)
def test_snippet_imports_nothing_internal(code: str) -> None:
    assert "django_tenantqueue.operations" not in code
    assert ".services import" not in code.replace("billing.services", "")


def test_files_that_pages_name_exist() -> None:
    for page in PAGES:
        for name in re.findall(r"`([\w/]+\.(?:py|sql))`", page.read_text()):
            if name.split("/")[0] in LAYERS:
                assert (PACKAGE / name).exists(), f"{page.name}: {name}"


def test_functions_that_the_architecture_names_exist() -> None:
    found = re.findall(r"`([\w/]+\.py)`, `(\w+)\(\)`", text_of("contributing/architecture.md"))
    assert found
    for name, function in found:
        assert f"def {function}(" in (PACKAGE / name).read_text(), f"{name}: {function}()"


def test_numbers_of_the_table_are_those_of_the_code() -> None:
    row = re.compile(r"^\| `(\w+)`: `([\w/]+)\.py` \| ([\d,]+) (\w+) \|", re.MULTILINE)
    found = row.findall(text_of("contributing/why.md"))
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

    # a row of a table is one line, and so is a link, a picture or a line of the list of all names
    alone = re.compile(r"\||- \[`|!?\[[^]]*\]\([^)]*\)\S?$")
    assert [line for line in long if not alone.match(line)] == []


def test_every_picture_of_the_admin_is_shown() -> None:
    source = (DOCS / "screenshots.py").read_text()
    seat, _, rest = source.partition("PRODUCT = (")
    pictures = re.findall(r'Picture\(\s*"([\w-]+)"(.*?)(?=Picture\(|\Z)', seat, re.S)
    assert len(pictures) > 20
    page = (DOCS / "reference/screens.md").read_text()
    for name, options in pictures:
        files = [f"{name}.png"]
        if "is_varied=True" in options:
            files += [f"{name}-dark.jpg", f"{name}-420.jpg"]
        for file in files:
            assert f"(../images/{file})" in page, file
    tutorial = (DOCS / "tutorial.md").read_text()
    for name in re.findall(r'"(tutorial-\w+)"', rest):
        assert f"(images/{name}.png)" in tutorial, name


def test_every_picture_is_used_and_exists() -> None:
    pages = "".join(page.read_text() for page in PAGES)
    shown = set(re.findall(r"images/([\w-]+\.(?:png|jpg|svg))", pages))

    assert {path.name for path in (DOCS / "images").iterdir()} == shown


def test_pictures_stay_small() -> None:
    assert sum(path.stat().st_size for path in (DOCS / "images").iterdir()) < 6_000_000


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
        r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sql))`", text_of("contributing/architecture.md")
    )

    assert len(named) > 40
    assert [name for name in named if not (PACKAGE / name).exists()] == []
