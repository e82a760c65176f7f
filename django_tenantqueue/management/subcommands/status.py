"""manage.py tenantqueue status"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from django.core.management.base import no_translations

from ...features import Muted, Problem
from ...status.fleet_report import read_report
from ..database import jobs_database
from ..status_text import report_lines
from ..subcommand import Subcommand
from .mute import end_text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 10,000")
    return int(text)


class Status(Subcommand):
    """Prints what the fleet does."""

    help = "Show the workers, what they run, maintenance, and why jobs do not start."
    several = "each"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--jobs",
            type=_count,
            default=5,
            metavar="NUMBER",
            help="running jobs shown of each worker, the longest first (default 5)",
        )
        self.add_format(parser)
        self.add_database(parser)

    @no_translations  # its words are English, and those of the report with them
    def handle(self, *args: Any, **options: Any) -> None:
        report = read_report(jobs_database(options["database"]), jobs=options["jobs"])
        if options["format"] == "json":
            shown = {
                "problems": list(map(_shown, report.problems)),
                "muted": list(map(_shown, report.muted)),
            }
            self.print_json({**asdict(report), **shown})
            return
        for line in report_lines(report):
            self.stdout.write(line)
        for problem in report.problems:
            self.stdout.write(self.style.WARNING(f"! {problem.text}"))
        for problem in report.muted:
            self.stdout.write(f"  muted {_muted_text(problem.muted)}: {problem.text}")


def _shown(problem: Problem) -> dict[str, Any]:
    """Return a problem without what only the admin's links need."""
    shown = {"code": problem.code, "text": problem.text, "remedy": problem.remedy}
    if (muted := problem.muted) is None:
        return shown
    return {**shown, "until": muted.until, "by": muted.by, "reason": muted.reason}


def _muted_text(muted: Muted | None) -> str:
    assert muted is not None
    by = f" by {muted.by}" if muted.by else ""
    return f"until {end_text(muted.until)}{by} ({' '.join(muted.reason.split())})"
