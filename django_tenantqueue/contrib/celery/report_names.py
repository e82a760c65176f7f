"""Names of Celery, each with its section of the guide and the difference in meaning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

PAGE = "docs/howto/coming-from-celery.md"
SECTIONS = {
    "app": "The Celery app and its settings",
    "tasks": "Tasks and retries",
    "calls": "Calls",
    "results": "Results and progress",
    "limits": "Time limits, rates and queues",
    "hooks": "Hooks, signals and base classes",
    "canvas": "Chains, groups and chords",
    "schedules": "Schedules",
    "workers": "Workers",
    "monitoring": "Monitoring and remote control",
    "tests": "Tests",
}
"""Headings of the guide, in the order of the report."""
ABOUT = {
    "tasks": "failed tasks are retried, and runs whose worker died are repeated, by default",
    "canvas": "callbacks of groups, and on_end, run after failures, too",
    "monitoring": "tools that monitor Celery see no jobs: use those of this package",
}
"""Notes on all lines of a section."""
STARTS = ("delay", "apply_async", "delay_on_commit", "apply_async_on_commit")


class Entry(NamedTuple):
    """Section, difference in meaning, and kind of a name."""

    section: str
    warning: str = ""
    what: str = ""


def _read_tables() -> dict[str, dict[str, Entry]]:
    tables: dict[str, dict[str, Entry]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            table = tables.setdefault(line.strip("[]"), {})
        elif not line.startswith("#"):
            section, _, rest = line.partition(": ")
            names, _, warning = rest.partition(" = ")
            words = names.split()
            what = words.pop() if words[-1].startswith(("@", "->")) else ""
            table.update(dict.fromkeys(words, Entry(section, warning, what)))
    return tables


TABLES = _read_tables()
MADE_BY = {"@task_class": "@task", "@app_class": "@app", "@result_class": "@result"}
"""Kind of the instances of a class."""


def section_of(name: str, table: str) -> Entry:
    """Return the entry of the first pattern that is in the name."""
    return next(found for pattern, found in TABLES[table].items() if re.search(pattern, name))


def anchor(section: str) -> str:
    """Return the address of a section of the guide."""
    return f"{PAGE}#{re.sub(r'[^a-z -]', '', SECTIONS[section].lower()).replace(' ', '-')}"
