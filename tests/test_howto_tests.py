"""The snippets of docs/howto/tests.md run as tests, and pytest's plugin is harmless elsewhere."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tomllib
import unittest
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest
from django.http import HttpResponse
from django.test import override_settings
from django.urls import path

from django_tenantqueue import task
from django_tenantqueue.calls.sources import registered_tasks
from django_tenantqueue.pytest_plugin import eager_jobs, run_jobs, tenantqueue  # noqa: F401

NEEDS = "schedules"
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/howto/tests.md").read_text()
SNIPPETS = [
    code
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    if "subprocess" not in code  # tests/process/ start workers
]


def order(request):
    shop = sys.modules["shop.tasks"]
    delayed = shop.build_report.using(tenant="acme", run_at=timedelta(hours=1))
    return HttpResponse(delayed.delay(int(request.POST["number"])).pk)


def call(request):
    job = sys.modules["shop.tasks"].call_partner.delay(int(request.POST["number"]))
    return HttpResponse(status=502 if job.wait(timeout=10).state == "error" else 200)


urlpatterns = [path("reports/order/", order), path("partners/call/", call)]


@pytest.fixture
def shop(monkeypatch):
    before = dict(registered_tasks())
    tasks = ModuleType("shop.tasks")
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    monkeypatch.setitem(sys.modules, "shop.tasks", tasks)

    @task(name="shop.tasks.build_report")
    def build_report(number):
        return {"rows": 2}

    @task(name="shop.tasks.call_partner", max_attempts=3, backoff=20)
    def call_partner(number):
        raise TimeoutError("timed out")

    @task(name="shop.tasks.clean_up", schedule="0 3 * * *")
    def clean_up():
        pass

    @task(name="shop.tasks.send_mail")
    def send_mail(address):
        pass

    vars(tasks).update(locals())
    with override_settings(ROOT_URLCONF=__name__):
        yield
    for name in registered_tasks().keys() - before.keys():
        registered_tasks().pop(name)


def classes_and_functions(code: str):
    namespace = {"__name__": "shop.tests"}
    exec(compile(code, "docs/howto/tests.md", "exec"), namespace)
    cases = [
        found
        for found in namespace.values()
        if isinstance(found, type) and found.__module__ == "shop.tests"
    ]
    functions = [found for name, found in namespace.items() if name.startswith("test_")]
    return cases, functions


def test_every_snippet_is_found():
    assert len(SNIPPETS) == 11


@pytest.mark.parametrize("code", [code for code in SNIPPETS if "TestCase)" in code])
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("shop")
def test_snippet_with_a_test_case_passes(code):
    (case,), _ = classes_and_functions(code)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    result = unittest.TestResult()
    suite.run(result)

    assert result.testsRun
    assert [text for _, text in result.failures + result.errors] == []


FUNCTIONS = [
    pytest.param(
        code,
        name,
        id=name,
        marks=pytest.mark.django_db(transaction="transactional_db" in parameters),
    )
    for code in SNIPPETS
    if "TestCase)" not in code
    for name, parameters in re.findall(r"^def (test_\w+)\((.*)\)", code, re.M)
]


@pytest.mark.parametrize(("code", "name"), FUNCTIONS)
def test_snippet_for_pytest_passes(code, name, shop, request):
    _, functions = classes_and_functions(code)
    (function,) = [found for found in functions if found.__name__ == name]
    for mark in getattr(function, "pytestmark", []):
        for fixture in mark.args:
            request.getfixturevalue(fixture)
    names = inspect.signature(function).parameters
    function(**{fixture: request.getfixturevalue(fixture) for fixture in names})


def test_plugin_is_found_by_pytest():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    (module,) = project["entry-points"]["pytest11"].values()
    assert import_module(module).tenantqueue


@pytest.mark.parametrize("django", [True, False])
def test_plugin_is_harmless_where_django_is_not_configured(tmp_path, django):
    (tmp_path / "test_sum.py").write_text(
        "import sys\n"
        "def test_sum():\n"
        "    assert 'django_tenantqueue.pytest_plugin' in sys.modules\n"
        "    assert 'django_tenantqueue.models' not in sys.modules\n"
        f"    assert {django} or 'django' not in sys.modules\n"
    )
    plugins = ["-p", "django_tenantqueue.pytest_plugin", *(["-p", "pytest_django"] * django)]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DJANGO", "PYTEST", "COV"))}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", *plugins],
        cwd=tmp_path,
        env={**env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout


def test_tables_are_made_by_migrations_when_other_apps_have_none(server_url):
    url = urlsplit(server_url)._replace(path="/no_migrations").geturl()
    test = "tests/operations/test_unique.py::test_job_is_the_same_however_its_arguments_are_given"
    env = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV", "TENANTQUEUE"))
    }

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-migrations", test],
        cwd=ROOT,
        env={**env, "DATABASE_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " passed" in ran.stdout
