"""manage.py tenantqueue schedules sync"""

from __future__ import annotations

import argparse
from typing import Any

from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand

from ...declared import sync_schedules


class SyncSchedules(Subcommand):
    help = "Store the schedules in code, and disable those that were removed from it."
    several = "each"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare, write, and print the numbers of changes."""
        using = jobs_database(options["database"])
        done = sync_schedules(using, whole=True)
        self.stdout.write(
            f"{done.added} schedules added, {done.changed} changed, {done.removed} disabled, since "
            "no longer declared"
        )
