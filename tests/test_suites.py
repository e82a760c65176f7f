"""Each module of tests declares the optional apps that it needs, or lies with those of the app."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import django_tenantqueue
from tests.suites import OPTIONAL_APPS, TESTS, installed_for, needs

MODULES = sorted(TESTS.rglob("test_*.py"))
APP = re.compile(r"django_tenantqueue\.contrib\.(\w+)")


def names_of(path: Path) -> Iterator[str]:
    """Yield what a module imports, with all dots of the way."""
    package = path.relative_to(TESTS.parent).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            yield from (f"{module}.{alias.name}" for alias in node.names)


@cache
def imported(path: Path) -> frozenset[str]:
    """Return the optional apps that a module imports, itself or with other modules of tests."""
    found: set[str] = set()
    for name in names_of(path):
        if match := APP.match(name):
            found |= {match[1]} & set(OPTIONAL_APPS)
        for parts in (name.split("."), name.split(".")[:-1]):
            file = TESTS.parent.joinpath(*parts).with_suffix(".py")
            if parts[:1] == ["tests"] and file.is_file() and file != path:
                found |= imported(file)
    return frozenset(found)


def test_module_declares_the_apps_that_it_imports() -> None:
    missing = {
        str(path): imported(path).difference(*map(installed_for, needs(path))) for path in MODULES
    }

    assert {path: names for path, names in missing.items() if names} == {}


def test_declared_names_are_those_of_apps() -> None:
    files = Path(django_tenantqueue.__file__).parent.glob("contrib/*/apps.py")

    assert sorted(file.parent.name for file in files) == list(OPTIONAL_APPS)
    for path in TESTS.rglob("*.py"):
        assert needs(path) <= set(OPTIONAL_APPS), path
