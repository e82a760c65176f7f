"""Which optional apps a module of tests needs. Without them it is not collected.

The tests of an app are in tests/contrib/<app>/. A module that needs other apps says so in a line
`NEEDS = "alerts schedules"`.
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent
OPTIONAL_APPS = (
    "alerts", "api", "celery", "fireworq", "http", "prometheus", "retention", "routing",
    "schedules",
)  # fmt: skip
NEEDS = re.compile(r'^NEEDS = "(.*)"$', re.MULTILINE)


def app_path(app: str) -> str:
    """Return the name of an optional app in INSTALLED_APPS."""
    return f"django_tenantqueue.contrib.{app}"


def needs(path: Path) -> set[str]:
    """Return the apps that a module of tests needs, or a folder."""
    found = set()
    if path.parent.parent == TESTS / "contrib" or path.parent == TESTS / "contrib":
        found = {path.relative_to(TESTS / "contrib").parts[0]} & set(OPTIONAL_APPS)
    if path.suffix == ".py" and (line := NEEDS.search(path.read_text())):
        found.update(line[1].split())
    return found
