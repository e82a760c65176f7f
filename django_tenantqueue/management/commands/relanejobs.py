"""manage.py relanejobs"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from ...conf import get_settings
from ...models import Change
from ...operations.actor import acting_as, shell_user
from ...operations.changes import Entry
from ...operations.maintain import relane


class Command(BaseCommand):
    """Applies a change of PRIORITY_SCOPE to the jobs that wait."""

    help = "After changing TENANTQUEUE['PRIORITY_SCOPE']: apply it to the jobs that wait."
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--database", help="alias of the jobs' database")

    def handle(self, *args: Any, **options: Any) -> None:
        """Change the jobs in short transactions until none is left."""
        using = options["database"] or get_settings().database
        total = 0
        entry = Entry(using, Change.Action.RELANE, Change.Kind.JOB)
        with acting_as(shell_user(), Change.Source.COMMAND):
            while changed := relane(using, entry=entry):
                total += changed
        self.stdout.write(f"{total} waiting jobs follow PRIORITY_SCOPE now")
