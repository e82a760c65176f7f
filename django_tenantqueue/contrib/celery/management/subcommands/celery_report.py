"""manage.py tenantqueue celery-report"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from django_tenantqueue.management.subcommand import Subcommand

from ...report import make_report, project_files
from ...report_names import ABOUT, SECTIONS, anchor


class CeleryReport(Subcommand):
    help = "List the lines of a project that use Celery, by section of the guide."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        text = "directories or files to read (default: the current directory)"
        parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help=text)
        self.add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        paths = [Path(path) for path in options["paths"]] or [Path()]
        for path in paths:
            if not path.exists():
                raise CommandError(f"{str(path)!r} does not exist", returncode=2)
        report = make_report(project_files(paths))
        if options["format"] == "json":
            return self.print_json(asdict(report))
        parts = [(f"{SECTIONS[key]}: {anchor(key)}", key, report.sections[key]) for key in SECTIONS]
        untold = f"{len(report.untold)} lines may use a task or its result: check them"
        for heading, key, lines in [*parts, (untold, "", report.untold)]:
            about = f"\n    ! {ABOUT[key]}" if key in ABOUT else ""
            for number, each in enumerate(lines):
                before = f"{heading}{about}\n\n" if number == 0 else ""
                self.stdout.write(f"{before}{each.file}:{each.line}  {each.code[:100]}")
                for warning in each.warnings:
                    self.stdout.write(f"    ! {warning}")
            self.stdout.write("\n" * bool(lines), ending="")
        for text in report.unread:
            self.stdout.write(f"! could not be read: {text}")
        return None
