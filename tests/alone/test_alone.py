"""The core works without optional apps, and each of them beside the core and what it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured

ROOT = Path(__file__).resolve().parents[2]
NEEDS = "alerts api celery fireworq http prometheus retention routing schedules"
SECONDS = 180.0
pytestmark = pytest.mark.heavy
OPTIONAL = [app for app in apps.get_app_configs() if app.label.startswith("tenantqueue_")]
TABLES = 15
HOT_INDEXES, MONTH_INDEXES = 24, 10
LISTS = [
    *("change", "job", "maintenance task", "monitor", "muted problem", "session", "task control"),
    *("tenant queue", "user limit", "worker"),
]
COMMANDS = ["runworker", "tenantqueue", "workerhealth"]


def short(path: str) -> str:
    return path.rpartition(".")[2]


def use(url: str, *optional: str) -> dict[str, Any]:
    """Use a site with these optional apps; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.alone.site"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "tests.alone.settings",
            "OPTIONAL_APPS": " ".join(optional),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_plain_install_has_the_core_alone(empty_database: str) -> None:
    found = use(empty_database)

    assert found["failed"] == []
    assert found["left"] == []
    assert len(found["tables"]) == TABLES
    assert (found["hot_indexes"], found["month_indexes"]) == (HOT_INDEXES, MONTH_INDEXES)
    assert found["lists"] == LISTS
    assert found["commands"] == COMMANDS


@pytest.mark.parametrize("app", OPTIONAL, ids=lambda app: short(app.name))
def test_each_app_works_beside_the_core_and_what_it_needs(
    app: AppConfig, empty_database: str
) -> None:
    needed: tuple[str, ...] = getattr(app, "needs", ())
    installed = [config for config in OPTIONAL if config.name in (app.name, *needed)]

    found = use(empty_database, *(short(config.name) for config in installed))

    assert found["failed"] == []
    assert found["left"] == []
    models = [m for config in installed for m in config.get_models()]
    own = {m._meta.db_table for m in models}
    assert len(found["tables"]) == TABLES + len(own)
    assert own < set(found["tables"])
    others = {m._meta.db_table for config in OPTIONAL for m in config.get_models()} - own
    assert not others & set(found["tables"])


def test_app_says_what_it_needs() -> None:
    module = import_module("django_tenantqueue.contrib.alerts.apps")
    app = module.AlertsConfig("django_tenantqueue.contrib.alerts", module)
    app.needs = ("django_tenantqueue.contrib.gone",)

    with pytest.raises(
        ImproperlyConfigured, match=r"alerts needs django_tenantqueue\.contrib\.gon"
    ):
        app.import_models()


WITHOUT = """
import django
from django.conf import settings

settings.configure(INSTALLED_APPS=["django.contrib.contenttypes", "django_tenantqueue"])
django.setup()
"""


@pytest.mark.parametrize(
    ("code", "app"),
    [
        ("from django_tenantqueue.contrib.schedules.control import make_schedule", "schedules"),
        ("from django_tenantqueue.contrib.alerts.control import make_alert_rule", "alerts"),
        ("import django_tenantqueue.contrib.retention.control", "retention"),
        ("from django_tenantqueue.contrib.routing.control import make_routing", "routing"),
        ("from django_tenantqueue.contrib.api.control import make_token", "api"),
        ("from django_tenantqueue.contrib.http import http_job", "http"),
        ("import django_tenantqueue.contrib.fireworq.urls", "http"),
    ],
)
def test_import_says_which_app_is_missing(code: str, app: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False
    )

    assert done.stderr.splitlines()[-1].endswith(
        f"needs django_tenantqueue.contrib.{app} in INSTALLED_APPS"
    )


def test_worker_leaves_jobs_of_an_app_that_it_lacks_to_others() -> None:
    code = WITHOUT + (
        "from django_tenantqueue.calls.sources import resolve\n"
        "resolve('task', '', 'django_tenantqueue.http.http_job')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "UnknownTask: no app that is installed here has the task" in done.stderr
