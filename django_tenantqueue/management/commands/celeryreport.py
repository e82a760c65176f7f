"""manage.py celeryreport"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from ...contrib.celery_report import Report, make_report
from ...contrib.celery_report.report import find_celery_app
from ...exceptions import InvalidOption
from ..printing import PrintingCommand


class Command(PrintingCommand):
    """Prints what a project's Celery tasks, schedules and calls become."""

    help = "Read the project's Celery tasks, schedules and calls, and say what to write for each."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        super().add_arguments(parser)
        add = parser.add_argument
        add(
            "--app",
            metavar="APP",
            help="the Celery app, as in celery -A (default: beside settings)",
        )
        add(
            "--path",
            action="append",
            type=Path,
            metavar="DIRECTORY",
            default=[],
            help="also look for calls in the files of this directory; may be repeated",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Read, then print."""
        for path in options["path"]:
            if not path.is_dir():
                raise CommandError(f"--path {str(path)!r} is no directory", returncode=2)
        try:
            report = make_report(find_celery_app(options["app"]), options["path"])
        except InvalidOption as error:
            raise CommandError(str(error)) from error
        if self.wants_json(options):
            self.print_json(asdict(report))
        else:
            for line in report_lines(report):
                self.stdout.write(line)


def report_lines(report: Report) -> list[str]:
    """Return the report as text."""
    counts = (
        f"{len(report.tasks)} tasks, {len(report.schedules)} schedules, "
        f"{len(report.calls)} lines to change"
    )
    lines = [f"Celery app {report.app}: {counts}"]
    if report.tasks:
        lines += ["", "tasks"]
    for task in report.tasks:
        wrote = ", ".join(f"{name}={value}" for name, value in task.options.items())
        lines += ["", f"{task.name}  {_place(task.file, task.line)}"]
        lines += [f"    you wrote  {wrote or 'no options'}", f"    you write  {task.write}"]
        lines += [f"    !          {note}" for note in task.notes]
    if report.schedules:
        lines += ["", "schedules"]
    for entry in report.schedules:
        lines += ["", f"{entry.name}  {entry.task}  ({entry.source})"]
        lines += [f"    you write  {entry.write or 'nothing that means the same'}"]
        lines += [f"    !          {note}" for note in entry.notes]
    if report.settings:
        lines += ["", "settings", ""]
    lines += [f"{row.name} = {row.value}\n    you write  {row.write}" for row in report.settings]
    if report.calls:
        lines += ["", "lines to change", ""]
    for call in report.calls:
        lines += [f"{_place(call.file, call.line)}  {call.code}", f"    you write  {call.write}"]
    lines += [f"! not read: {text}" for text in report.unread]
    return lines


def _place(file: str, line: int) -> str:
    """Return a file and a line, relative to here where possible."""
    path = Path(file)
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{line}"
