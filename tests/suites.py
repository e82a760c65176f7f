"""Which optional apps a module of tests needs. Without them it is not collected.

The tests of an app are in tests/contrib/<app>/. A module that needs other apps says so in a line
`NEEDS = "alerts schedules"`, a folder in its __init__.py.

As a program it runs the tests of the core without optional apps, and those of each app with the
apps that it needs: `python -m tests.suites`. Its arguments go to pytest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).resolve().parent
OPTIONAL_APPS = (
    "alerts", "api", "celery", "fireworq", "http", "prometheus", "retention", "routing",
    "schedules", "shards",
)  # fmt: skip
NEEDS = re.compile(r'^NEEDS = "(.*)"$', re.MULTILINE)


def app_path(app: str) -> str:
    return f"django_tenantqueue.contrib.{app}"


def needs(path: Path) -> set[str]:
    """Return the apps that a module of tests needs, or a folder."""
    if path.is_dir():
        own = {path.name} & set(OPTIONAL_APPS) if path.parent == TESTS / "contrib" else set()
        start = path / "__init__.py"
        return own | (_declared(start) if start.exists() else set())
    return needs(path.parent) | (_declared(path) if path.suffix == ".py" else set())


def _declared(path: Path) -> set[str]:
    found = NEEDS.search(path.read_text())
    return set(found[1].split()) if found else set()


def installed_for(app: str) -> list[str]:
    config = getattr(import_module(f"{app_path(app)}.apps"), f"{app.title()}Config")
    return [app, *(needed.rpartition(".")[2] for needed in config.needs)]


def run(installed: list[str], *arguments: str) -> bool:
    print(f"\n=== {arguments[0]}, installed: {' '.join(installed) or 'the core'}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        env={**os.environ, "OPTIONAL_APPS": " ".join(installed)},
        check=False,
    )
    return done.returncode == 0


def main(arguments: list[str]) -> bool:
    """Run each suite; return whether all have passed."""
    passed = [run([], "tests", "--ignore", "tests/contrib", *arguments)]
    passed += [run(installed_for(app), f"tests/contrib/{app}", *arguments) for app in OPTIONAL_APPS]
    return all(passed)


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1:]))
