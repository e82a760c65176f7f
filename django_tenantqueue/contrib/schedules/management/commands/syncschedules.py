"""manage.py syncschedules"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from django_tenantqueue.management.database import acting_as_shell_user, jobs_database

from ...declared import sync_schedules


class Command(BaseCommand):
    """Brings the schedules of the code up to date, those of removed tasks included."""

    help = (
        "Write the schedules that @task(schedule=…) declares, and disable those that no code "
        "declares any more."
    )
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--database", help="alias of the jobs' database")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare, write, and say what was done."""
        using = jobs_database(options["database"])
        with acting_as_shell_user():
            done = sync_schedules(using, whole=True)
        self.stdout.write(
            f"{done.added} schedules added, {done.changed} changed, {done.removed} disabled since "
            "the code no longer declares them"
        )
