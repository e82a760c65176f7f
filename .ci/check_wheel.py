"""Check a built wheel: ``contents WHEEL`` compares it with the checkout, ``import`` uses it.

``import`` runs in an environment that holds the wheel and what it asks for, nothing else.
"""

import importlib
import pkgutil
import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

PACKAGE = "django_tenantqueue"
NEEDED = ("django", "psycopg")
WITH_TABLES = (
    "alerts",
    "api",
    "fireworq",
    "prometheus",
    "retention",
    "routing",
    "schedules",
    "shards",
)
APPS = (*WITH_TABLES, "celery", "http")
"""Optional apps."""
WITH_EXTRAS = (
    *("contrib.api.", "contrib.celery", "contrib.django_tasks", "contrib.fireworq."),
    *("contrib.http.client", "contrib.otel", "pytest_plugin"),
)
"""Modules that import what comes with extras, or pytest."""


def check_contents(wheel: str) -> None:
    listed = subprocess.run(
        ["git", "ls-files", PACKAGE], capture_output=True, text=True, check=True
    )
    expected = {name for name in listed.stdout.splitlines() if Path(name).is_file()}
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        found = {name for name in names if name.startswith(f"{PACKAGE}/")}
        metadata = Parser().parsestr(
            archive.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode()
        )
    if missing := expected - found:
        sys.exit(f"not in the wheel: {sorted(missing)}")
    if extra := found - expected:
        sys.exit(f"in the wheel, but not in the checkout: {sorted(extra)}")
    kinds = {
        "SQL": f"{PACKAGE}/sql/",
        "migrations": f"{PACKAGE}/migrations/0001",
        "templates": f"{PACKAGE}/templates/",
        "an app's own SQL": f"{PACKAGE}/contrib/retention/sql/",
        "an app's own templates": f"{PACKAGE}/contrib/schedules/templates/",
        "an app's own texts": f"{PACKAGE}/contrib/alerts/locale/ja/LC_MESSAGES/django.mo",
        "Japanese texts": f"{PACKAGE}/locale/ja/LC_MESSAGES/django.mo",
        "type marker": f"{PACKAGE}/py.typed",
    }
    for kind, prefix in kinds.items():
        if not any(name.startswith(prefix) for name in found):
            sys.exit(f"no {kind} in the wheel ({prefix})")
    if stray := {n.split("/")[0] for n in names} - {PACKAGE} - {dist_info(names)}:
        sys.exit(f"the wheel installs more than the package: {sorted(stray)}")
    required = [
        line.split(">=")[0].lower()
        for line in metadata.get_all("Requires-Dist", [])
        if "extra ==" not in line
    ]
    if sorted(required) != sorted(NEEDED):
        sys.exit(f"the wheel asks for {required}, not for {NEEDED}")
    if links := re.findall(r"\]\((?!https?:)[^)]*\)", str(metadata.get_payload())):
        sys.exit(f"the description has links that lead nowhere: {links}")
    print(f"{Path(wheel).name}: {len(found)} files")


def dist_info(names: list[str]) -> str:
    return next(name.split("/")[0] for name in names if ".dist-info/" in name)


def check_import() -> None:
    import django
    from django.conf import settings

    settings.configure(
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}},
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            PACKAGE,
            *(f"{PACKAGE}.contrib.{app}" for app in APPS),
        ],
        SECRET_KEY="none",
    )
    django.setup()
    package = importlib.import_module(PACKAGE)
    count = 0
    for module in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        if not module.name.removeprefix(f"{PACKAGE}.").startswith(WITH_EXTRAS):
            importlib.import_module(module.name)
            count += 1
    from django.db.migrations.loader import MigrationLoader

    migrations = MigrationLoader(None).disk_migrations
    found = {app for app, _ in migrations}
    for app in ("tenantqueue", *(f"tenantqueue_{app}" for app in WITH_TABLES)):
        if app not in found:
            sys.exit(f"no migration of {app} is found")
    print(f"{count} modules imported from {Path(package.__path__[0])}")


match sys.argv[1:]:
    case ["contents", wheel]:
        check_contents(wheel)
    case ["import"]:
        check_import()
    case _:
        sys.exit(__doc__)
