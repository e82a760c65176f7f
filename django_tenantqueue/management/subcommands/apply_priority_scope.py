"""manage.py tenantqueue apply-priority-scope"""

from __future__ import annotations

import argparse
from typing import Any

from ...models import Change
from ...operations.changes import Entry
from ...operations.maintain import relane
from ..database import jobs_database
from ..subcommand import Subcommand


class ApplyPriorityScope(Subcommand):
    """Applies a change of PRIORITY_SCOPE to waiting jobs."""

    help = "Apply a change of TENANTQUEUE['PRIORITY_SCOPE'] to waiting jobs."
    several = "each"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Change the jobs in short transactions until none is left."""
        using = jobs_database(options["database"])
        total = 0
        entry = Entry(using, Change.Action.RELANE, Change.Kind.JOB)
        while changed := relane(using, entry=entry):
            total += changed
        self.stdout.write(f"{total} waiting jobs follow PRIORITY_SCOPE now")
