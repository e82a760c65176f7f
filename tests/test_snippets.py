"""The Python and the SQL of each page are run, in the order of the page, in a small project."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml
from django import VERSION
from django.apps import AppConfig, apps
from django.contrib import admin
from django.core.management import get_commands, load_command_class
from django.db import connection

from django_tenantqueue.calls.sources import registered_tasks
from django_tenantqueue.models import Job
from django_tenantqueue.signals import job_enqueued, job_finished
from django_tenantqueue.testing import run_pending
from tests import snippet_projects

NEEDS = "alerts api celery fireworq http prometheus retention routing schedules"
DOCS = Path(__file__).parents[1] / "docs"
ELSEWHERE = {
    *("howto/coming-from-celery", "howto/coming-from-django-rq"),
    *("howto/coming-from-django-tasks-db", "howto/coming-from-procrastinate"),
    "howto/tests",
}
"""Pages that tests of their own run: test_guides.py, test_howto_tests.py."""
SQL = "(?:postgre)?sql"
"""The languages of SQL: only the lexer of the second knows $$."""
PAGES = {
    page.relative_to(DOCS).with_suffix("").as_posix(): page.read_text()
    for page in sorted(DOCS.rglob("*.md"))
    if "_build" not in page.parts
}


def blocks(page: str, language: str) -> list[str]:
    """Return the code of a page in the order in which it stands there."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", PAGES[page], re.M | re.S)
    return [re.sub(f"^{indent}", "", code, flags=re.M) for indent, code in found]


def with_blocks(language: str) -> list[str]:
    return [page for page in PAGES if blocks(page, language) and page not in ELSEWHERE]


class ShopConfig(AppConfig):
    """The app whose modules the pages show."""

    name = label = "shop"
    path = os.devnull


MODULES = (
    *("shop", "shop.admin", "shop.apps", "shop.models", "shop.tasks", "shop.views"),
    *("billing", "billing.models", "billing.services"),
    *("reports", "reports.models", "reports.tasks", "reports.views"),
)
"""They are one module here, which holds everything that a page defines."""


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Yield the module in which a page is run. Models that it defines have tables at once."""
    before, registered = dict(registered_tasks()), dict(admin.site._registry)
    module = ModuleType("shop.tasks")
    module.__spec__ = ModuleSpec("shop.tasks", None)
    module.__package__ = "shop"
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, module)
    for name in snippet_projects.NOT_INSTALLED:
        monkeypatch.setitem(sys.modules, name, MagicMock())
    config = ShopConfig("shop", module)
    config.apps, config.models = apps, apps.all_models["shop"]
    find = apps.get_containing_app_config
    monkeypatch.setattr(
        apps,
        "get_containing_app_config",
        lambda name: config if name.startswith("shop") else find(name),
    )
    monkeypatch.setitem(apps.app_configs, "shop", config)
    wait = Job.wait

    def run_and_wait(job: Job, timeout: Any = 30.0) -> Job:
        run_pending()
        return wait(job, timeout)

    monkeypatch.setattr(Job, "wait", run_and_wait)
    tables: list[Any] = []

    register = apps.register_model

    def make_table(label: str, model: Any) -> None:
        register(label, model)
        if label == "shop":
            with connection.schema_editor() as editor:
                editor.create_model(model)
            tables.append(model)

    monkeypatch.setattr(apps, "register_model", make_table)
    receivers = {signal: signal.receivers.copy() for signal in (job_enqueued, job_finished)}
    yield module
    for signal, found in receivers.items():
        signal.receivers = found
        signal.sender_receivers_cache.clear()
    for model in reversed(tables):
        with connection.schema_editor() as editor:
            editor.delete_model(model)
    apps.all_models.pop("shop", None)
    apps.clear_cache()
    admin.site._registry = registered
    for name in registered_tasks().keys() - before.keys():
        registered_tasks().pop(name)


@pytest.mark.parametrize("page", with_blocks("python"))
@pytest.mark.django_db(transaction=True)
def test_python_of_a_page_runs(page: str, shop: ModuleType, settings: Any) -> None:
    if VERSION < (6, 0) and "from django.tasks" in PAGES[page]:
        pytest.skip("Django 6.0 and later have django.tasks")
    settings.TENANTQUEUE |= snippet_projects.SETTINGS.get(page, {})
    space = vars(shop)
    snippet_projects.begin(page, space)
    for number, code in enumerate(blocks(page, "python"), 1):
        if (page, number) not in snippet_projects.TYPES_ONLY:
            exec(compile(code, f"{page}.md, snippet {number}", "exec"), space)
    run_pending(scheduled=True)

    failed = Job.objects.filter(state="error").values_list("task", "errors")
    assert [each for each in failed if each[0] not in snippet_projects.FAILING] == []


@pytest.mark.parametrize("page", with_blocks(SQL))
@pytest.mark.django_db
def test_sql_of_a_page_runs(page: str) -> None:
    with connection.cursor() as cursor:
        for code in (snippet_projects.BEFORE_SQL.get(page, ""), *blocks(page, SQL)):
            if code:
                cursor.execute(code)


@pytest.mark.parametrize("page", with_blocks("yaml"))
def test_yaml_of_a_page_can_be_read(page: str) -> None:
    for code in blocks(page, "yaml"):
        assert list(yaml.safe_load_all(code))


def command_lines() -> list[tuple[str, str]]:
    """Return (page, arguments) of each line of a shell that calls manage.py."""
    return [
        (page, re.split(r"  #| [|>] ", line)[0].strip())
        for page, text in PAGES.items()
        for line in re.findall(r"^ *(?:\$ )?(?:python )?manage\.py ((?:.*\\\n)*.*)$", text, re.M)
        if "…" not in line
    ]


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_command_of_a_page_is_understood(page: str, line: str) -> None:
    name, *arguments = shlex.split(re.sub(r"\\\n", " ", line))
    if not get_commands()[name].startswith("django_tenantqueue"):
        assert name in get_commands()
        return
    parser = load_command_class("django_tenantqueue", name).create_parser("manage.py", name)

    assert parser.parse_args(arguments)
