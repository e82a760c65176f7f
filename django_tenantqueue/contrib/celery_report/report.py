"""Reads a Celery app, and finds the files of its project."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings

from ...exceptions import InvalidOption
from .calls import Finding, scan
from .options import SettingRow, read_settings
from .schedules import BeatEntry, read_schedules
from .tasks import CeleryTask, read_tasks

NOT_THE_PROJECT = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Report:
    """What there is in Celery, and what to write for it."""

    app: str
    tasks: list[CeleryTask]
    schedules: list[BeatEntry]
    settings: list[SettingRow]
    calls: list[Finding]
    unread: list[str]
    """Files that are not Python of this version, with the reason."""


def find_celery_app(name: str | None) -> Any:
    """Return the project's Celery app, given as in `celery -A`, or found. Raises InvalidOption."""
    if find_spec("celery") is None:
        raise InvalidOption(
            "Celery is not installed in this environment: run the command where the project's "
            "Celery workers run, or pip install celery"
        )
    from celery.app.utils import find_app

    tried = [name] if name is not None else _places()
    for place in tried:
        try:
            found = find_app(place)
        except (ImportError, AttributeError) as error:
            missing = getattr(error, "name", None)
            if name is None and isinstance(error, ModuleNotFoundError) and _is_in(place, missing):
                continue
            raise InvalidOption(f"--app {place!r} cannot be imported: {error}") from error
        if hasattr(found, "tasks") and hasattr(found, "conf"):
            return found
    raise InvalidOption(
        f"no Celery app in {' or '.join(map(repr, tried))}: name it as in celery -A, for example "
        "--app mysite.celery:app"
    )


def _is_in(place: str, module: str | None) -> bool:
    """Whether a module is a place, or a package around it."""
    return module is not None and f"{place}.".startswith(f"{module}.")


def _places() -> list[str]:
    """Return where a Django project has its Celery app: beside its settings, by convention."""
    module = str(settings.SETTINGS_MODULE or "")
    packages = []
    while "." in module:
        module = module.rpartition(".")[0]
        packages.append(f"{module}.celery")
    wsgi = str(getattr(settings, "WSGI_APPLICATION", None) or "").partition(".")[0]
    if wsgi:
        packages.append(f"{wsgi}.celery")
    return list(dict.fromkeys(packages)) or ["celery_app"]


def make_report(app: Any, more_paths: list[Path] | None = None) -> Report:
    """Return the report on a Celery app and the project around it."""
    app.loader.import_default_modules()
    app.finalize(auto=True)
    tasks = [
        task
        for name, task in sorted(app.tasks.items())
        if not name.startswith(("celery.", "django_tenantqueue."))
    ]
    schedules = read_schedules(app)
    read = [found for task in tasks for found in read_tasks(app, task, schedules)]
    lines = {found.name: found.write for found in read}
    calls, unread = scan(project_files(app, more_paths or []), {_short(task) for task in tasks})
    return Report(
        app=str(app.main or "celery"),
        tasks=read,
        schedules=[entry.beside(lines.get(entry.task)) for entry in schedules],
        settings=read_settings(app),
        calls=calls,
        unread=unread,
    )


def _short(task: Any) -> str:
    return str(task.name).rpartition(".")[2]


def project_files(app: Any, more_paths: list[Path]) -> list[Path]:
    """Return the Python files of the project: of its apps, beside its Celery app, and others."""
    folders = {Path(config.path).resolve() for config in apps.get_app_configs()}
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        is_its_own = names.get("app") is app or names.get("celery") is app
        if is_its_own and names.get("__file__"):
            folders.add(Path(names["__file__"]).resolve().parent)
    own = Path(__file__).resolve().parents[2]
    folders = {
        folder
        for folder in folders
        if folder != own and not set(NOT_THE_PROJECT) & set(folder.parts)
    }
    found = {path for folder in (*folders, *more_paths) for path in folder.rglob("*.py")}
    return sorted(
        path
        for path in found
        if "migrations" not in path.parts and not set(NOT_THE_PROJECT) & set(path.parts)
    )
