"""The page of all public names is complete, and names nothing else.

It is compared with what Python finds at run time. docs/_ext/surface.py reads the source.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from django.apps import apps
from django.utils.module_loading import import_string

import django_tenantqueue
from django_tenantqueue import control, exceptions, features, reports, signals, tasks, testing
from django_tenantqueue.calls.options import NAMES, OF_TASKS
from django_tenantqueue.calls.task_hooks import TaskHooks
from django_tenantqueue.calls.unique import Unique
from django_tenantqueue.contrib.schedules.recurrence import Cron, Every
from django_tenantqueue.execution.current_job import RunningJob
from django_tenantqueue.groups import DEFAULTS
from django_tenantqueue.models import ConcurrentJobMonitor, Job, TenantQueue
from django_tenantqueue.models.job_query import JobQuerySet
from django_tenantqueue.states import Priority, State
from tests.test_docs import DOCS, MAKERS, from_code, public, snippets

NEEDS = "alerts api celery fireworq http prometheus retention routing schedules shards"
PAGE = DOCS / "reference" / "surface.md"
HOW = "add it to __all__ and run `make reference`, or put an underscore in front"
MODULES = (django_tenantqueue, control, reports, testing, *MAKERS)


@cache
def sections() -> dict[str, list[tuple[list[str], str]]]:
    """Return (names, link) of the lines, by the heading above them."""
    found: dict[str, list[tuple[list[str], str]]] = {}
    title = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ").replace("`", "")
            found.setdefault(title, [])
        elif line.startswith(("- [", "- `")):
            spans = re.findall(r"`([^`]+)`", line.partition(" – ")[0])
            names = [re.split(r"[( ]", span)[0] for span in spans]
            link = re.match(r"- \[`[^`]+`\]\((.*?)\)", line)
            found[title].append((names, link[1] if link else ""))
    return found


def named(title: str) -> set[str]:
    """Return the names below a heading."""
    return {name for names, _ in sections()[title] for name in names}


def public_of(module: ModuleType) -> set[str]:
    """Return the names that a module exports, and those of functions and classes of its own."""
    own = {
        name
        for name, found in vars(module).items()
        if (inspect.isfunction(found) or inspect.isclass(found))
        and found.__module__ == module.__name__
    }
    return {name for name in own | set(module.__all__) if not name.startswith("_")}


def missing(module: ModuleType) -> set[str]:
    """Return the public names of a module that the page lacks."""
    return public_of(module) - named(module.__name__)


def resolves(path: str) -> bool:
    """Whether a dotted path leads to something."""
    try:
        import_string(path)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_page_has_each_name_of_a_module(module: ModuleType) -> None:
    assert missing(module) == set(), HOW


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_page_has_no_other_name_of_a_module(module: ModuleType) -> None:
    assert named(module.__name__) - public_of(module) == set()


@pytest.mark.parametrize("module", [django_tenantqueue, control])
def test_new_function_is_missing_until_the_page_is_renewed(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpause() -> None:
        pass

    unpause.__module__ = module.__name__
    monkeypatch.setattr(module, "unpause", unpause, raising=False)

    assert missing(module) == {"unpause"}


def test_new_export_is_missing_until_the_page_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(django_tenantqueue, "__all__", [*django_tenantqueue.__all__, "chain"])

    assert missing(django_tenantqueue) == {"chain"}


def test_page_has_each_exception() -> None:
    listed = {
        f"{title}.{name}"
        for title in sections()
        if title.startswith("django_tenantqueue.")
        for name in named(title)
        if re.search(r"exceptions$|\.celery\.", title)
    }
    core = {name for name, kind in vars(exceptions).items() if inspect.isclass(kind)}
    for name in core:
        if issubclass(getattr(exceptions, name), exceptions.TenantQueueError):
            assert f"django_tenantqueue.exceptions.{name}" in listed
    assert [path for path in listed if not resolves(path)] == []


def test_page_has_each_signal() -> None:
    kinds = {name for name, each in vars(signals).items() if isinstance(each, signals.TaskSignal)}

    assert named("django_tenantqueue.signals") == kinds


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        (tasks.Task, "Task"),
        (tasks.BoundTask, "BoundTask"),
        (TaskHooks, "TaskHooks"),
        (RunningJob, "RunningJob"),
        (features.Feature, "features.Feature"),
        (ConcurrentJobMonitor, "ConcurrentJobMonitor"),
        (TenantQueue, "TenantQueue"),
        (Job, "Job"),
    ],
)
def test_page_has_each_member_of_a_class(kind: Any, title: str) -> None:
    made_by_django = r"get_|objects$|DoesNotExist|MultipleObjects|NotUpdated|detail$"
    related = {each.get_accessor_name() for each in _relations(kind)}
    names = {name for name in public(kind) if not re.match(made_by_django, name)} - related

    assert names - named(title) == set()


def _relations(kind: Any) -> list[Any]:
    return list(kind._meta.related_objects) if hasattr(kind, "_meta") else []


def test_page_has_each_method_of_the_queryset() -> None:
    assert {f"objects.{name}" for name in public(JobQuerySet)} - named("Job") == set()


def test_page_has_each_model_with_its_columns() -> None:
    ours = from_code.installed_apps()
    kinds = [
        kind
        for config in apps.get_app_configs()
        if config.name in ours
        for kind in config.get_models()
    ]
    assert named("Models") >= {kind.__name__ for kind in kinds}
    for kind in kinds:
        columns = {field.attname for field in kind._meta.local_fields if field.column}
        if not kind._meta.proxy:
            assert columns - named(kind.__name__) == set(), kind.__name__
            for name in named(kind.__name__):
                owner, _, method = name.rpartition("objects.")
                where = kind._default_manager if method != name or owner else kind
                assert hasattr(where, method), f"{kind.__name__}.{name}"


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("JobOptions", NAMES),
        ("TaskOptions", OF_TASKS),
        ("GroupOptions", DEFAULTS),
        ("Unique", [field.name for field in fields(Unique)]),
        ("Cron", [field.name for field in fields(Cron)]),
        ("Every", [field.name for field in fields(Every)]),
        ("Result", control.Result._fields),
        ("State", State.__members__),
        ("Priority", public(Priority)),
    ],
)
def test_page_has_each_option_and_value(title: str, names: Iterable[str]) -> None:
    assert set(names) - named(title) == set()


def test_page_has_each_setting() -> None:
    groups: dict[str, set[str]] = {}
    for each in from_code.all_settings():
        groups.setdefault(each.group, set()).add(each.key)
    for group, keys in groups.items():
        assert named(f'TENANTQUEUE["{group}"]' if group else "TENANTQUEUE") == keys


def test_page_has_each_command_with_its_options() -> None:
    for name in from_code.commands():
        title = name if name in ("runworker", "workerhealth") else f"tenantqueue {name}"
        options = {re.split(r"[( ]", option)[0] for option in from_code.command_options(name)}
        assert named(title) == {*options, title.split(" ")[0]}


def test_page_has_what_examples_import() -> None:
    listed = {name for title in sections() for name in named(title)}
    short = {name.rpartition(".")[2] for name in listed}
    for page in [*(DOCS / "howto").glob("*.md"), *(DOCS / "reference").glob("*.md")]:
        for kind, code in snippets(page):
            if kind != "python":
                continue
            for node in ast.walk(ast.parse(code)):
                module = getattr(node, "module", None) or ""
                if isinstance(node, ast.ImportFrom) and module.startswith("django_tenantqueue"):
                    for alias in node.names:
                        known = alias.name in short or f"{module}.{alias.name}" in sections()
                        assert known, f"{page.name}: {module}.{alias.name}"


def test_dotted_names_of_the_page_exist() -> None:
    paths = [path for path in named("Other modules") if ".contrib." not in path]

    assert len(paths) > 10
    assert [path for path in paths if not resolves(path)] == []


def test_each_name_links_to_what_explains_it() -> None:
    found = [row for rows in sections().values() for row in rows]
    assert len(found) > 800
    assert [names for names, link in found if not link] == []


def test_each_name_is_listed_once_below_its_heading() -> None:
    for title, found in sections().items():
        names = [name for each, _ in found for name in each]
        if title.rpartition(".")[2] != "urls":  # where requests differ by their methods
            assert len(names) == len(set(names)), title


def test_marker_of_the_page_is_filled_from_the_code() -> None:
    made = from_code.PARTS["surface"]()

    assert made in PAGE.read_text()
