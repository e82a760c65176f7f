"""The database under all tests, and what a skipped test means in CI."""

import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
import psycopg
import pytest
from django.apps import apps
from django.db import connections
from django.test import TransactionTestCase
from psycopg import sql

from django_tenantqueue import features
from django_tenantqueue.calls import sources
from django_tenantqueue.features import Feature
from example_project.postgres import database
from tests.servers import SETTINGS
from tests.suites import app_path, needs
from tests.tables import empty_tables
from tests.timing import RERUN_WHEN_LATE

# Reasons that may skip a test in CI: a version of the matrix does not have the feature.
# A missing program is no reason there.
ALLOWED_REASONS = ("Django", "PostgreSQL", "Python", "root only")

FIRST = ("queries", "process", "audit", "browser", "example", "concurrency")
TESTS_THAT_WAIT = ("concurrency", "process", "worker")
KIND = re.compile(r"tests/(?:contrib/\w+/test_)?([a-z]+)")


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """Yield the URL of the server: DATABASE_URL, or an embedded server for this run."""
    with database(SETTINGS) as url:
        yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, server_url: str
) -> Iterator[None]:
    """Point Django at the server before pytest-django makes the test database."""
    # In place: connection objects made before this hold the same dict.
    connections.settings["default"].update(environ.Env.db_url_config(server_url))
    if template := os.environ.get("TENANTQUEUE_TEST_TEMPLATE"):  # a migrated database
        connections.settings["default"]["TEST"].update(TEMPLATE=template, MIGRATE=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: empty_tables())
        yield
    connections.close_all()


@pytest.fixture(scope="session")
def database_url(server_url: str, django_db_setup: None) -> str:
    """Return the URL of the test database, for processes that a test starts."""
    name = connections.settings["default"]["NAME"]
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


@pytest.fixture
def empty_database(server_url: str) -> Iterator[str]:
    """Yield the URL of a database of its own, for processes that migrate it."""
    name = f"empty_{secrets.token_hex(4)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out tests that need an optional app which is not installed."""
    missing = not all(apps.is_installed(app_path(app)) for app in needs(collection_path))
    return missing or None


def kind_of(item: pytest.Item) -> str:
    """Return the folder of a test of the core; those of an app are named like folders."""
    found = KIND.match(item.nodeid)
    return found[1] if found else ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the plans, which other tests would leave statistics for, and the longest files.

    A long file that begins late runs on alone at the end. Where tests wait for something, those
    that were late are run again, unless --reruns is given.
    """
    items.sort(key=lambda item: [kind_of(item) != kind for kind in FIRST])
    if config.getoption("reruns", None) is None:
        for item in items:
            if kind_of(item) in TESTS_THAT_WAIT:
                item.add_marker(RERUN_WHEN_LATE)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in CI that skipped a test for want of something that CI must have."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI"):
        return
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(ALLOWED_REASONS):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter.line(f"\nskipped in CI: {report.nodeid}: {reason}", red=True)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Feature], None]]:
    """Return a function that installs a feature, after the others, until the test ends."""

    def install(feature: Feature) -> None:
        everything = (*features.installed(), feature)
        monkeypatch.setattr(features, "installed", lambda: everything)
        features._bound.cache_clear()

    yield install
    features._bound.cache_clear()


@pytest.fixture
def own_tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the tasks of the process, which a test changes."""
    tasks = dict(sources.registered_tasks())
    monkeypatch.setattr(sources, "_tasks", tasks)
    return tasks


@pytest.fixture
def core_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No feature, as in a project that installs the core alone."""
    monkeypatch.setattr(features, "installed", tuple)
    features._bound.cache_clear()
    yield
    features._bound.cache_clear()
