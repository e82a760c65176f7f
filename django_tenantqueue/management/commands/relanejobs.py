"""manage.py relanejobs"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from ...models import Change
from ...operations.changes import Entry
from ...operations.maintain import relane
from ..database import acting_as_shell_user, jobs_database


class Command(BaseCommand):
    """Applies a change of PRIORITY_SCOPE to the jobs that wait."""

    help = "After changing TENANTQUEUE['PRIORITY_SCOPE']: apply it to the jobs that wait."
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--database", help="alias of the jobs' database")

    def handle(self, *args: Any, **options: Any) -> None:
        """Change the jobs in short transactions until none is left."""
        using = jobs_database(options["database"])
        total = 0
        entry = Entry(using, Change.Action.RELANE, Change.Kind.JOB)
        with acting_as_shell_user():
            while changed := relane(using, entry=entry):
                total += changed
        self.stdout.write(f"{total} waiting jobs follow PRIORITY_SCOPE now")
