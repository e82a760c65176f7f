"""The Python and the SQL of each page are run, in the order of the page, in a small project."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib import admin
from django.db import connection

from django_tenantqueue.calls.sources import registered_tasks
from django_tenantqueue.models import Job
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


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Yield the module that holds what the pages define: all modules of the app `shop` are one."""
    before, registered = dict(registered_tasks()), dict(admin.site._registry)
    module = ModuleType("shop.tasks")
    module.__spec__ = ModuleSpec("shop.tasks", None)
    module.__package__ = "shop"
    for name in ("shop", "shop.tasks", "shop.models", "shop.views", "shop.apps"):
        monkeypatch.setitem(sys.modules, name, module)
    config = ShopConfig("shop", module)
    config.apps, config.models = apps, apps.all_models["shop"]
    find = apps.get_containing_app_config
    monkeypatch.setattr(
        apps,
        "get_containing_app_config",
        lambda name: config if name.startswith("shop") else find(name),
    )
    monkeypatch.setitem(apps.app_configs, "shop", config)
    yield module
    for model in reversed(tables):
        with connection.schema_editor() as editor:
            editor.delete_model(model)
    tables.clear()
    apps.all_models.pop("shop", None)
    apps.clear_cache()
    admin.site._registry = registered
    for name in registered_tasks().keys() - before.keys():
        registered_tasks().pop(name)


tables: list[Any] = []
"""Models that a page has defined."""


def make_tables() -> None:
    """Make the tables of the models that the last snippet has defined."""
    for model in list(apps.all_models["shop"].values()):
        if model not in tables and model._meta.managed and not model._meta.auto_created:
            with connection.schema_editor() as editor:
                editor.create_model(model)
            tables.append(model)


@pytest.mark.parametrize("page", with_blocks("python"))
@pytest.mark.django_db(transaction=True)
def test_python_of_a_page_runs(page: str, shop: ModuleType) -> None:
    space = vars(shop)
    snippet_projects.begin(page, space)
    kept = dict(vars(settings._wrapped))
    try:
        for number, code in enumerate(blocks(page, "python"), 1):
            exec(compile(code, f"{page}.md, snippet {number}", "exec"), space)
            make_tables()
        with patch("time.sleep"):
            run_pending(scheduled=True)
    finally:
        vars(settings._wrapped).clear()
        vars(settings._wrapped).update(kept)

    failed = Job.objects.filter(state="error").values_list("task", "errors")
    assert [each for each in failed if each[0] not in snippet_projects.FAILING] == []


@pytest.mark.parametrize("page", with_blocks("sql"))
@pytest.mark.django_db(transaction=True)
def test_sql_of_a_page_runs(page: str) -> None:
    for code in blocks(page, "sql"):
        with connection.cursor() as cursor:
            cursor.execute(code)


@pytest.mark.parametrize("page", with_blocks("yaml"))
def test_yaml_of_a_page_can_be_read(page: str) -> None:
    for code in blocks(page, "yaml"):
        assert list(yaml.safe_load_all(code))
