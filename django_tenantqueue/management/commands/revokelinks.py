"""manage.py revokelinks"""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ...operations.status_links import revoke_status_links
from ..database import acting_as_shell_user, jobs_database


class Command(BaseCommand):
    """Revokes links to the statuses of jobs."""

    help = "Revoke links to the statuses of jobs: of a job, a user, a tenant, or all."
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add = parser.add_argument
        add("--job", type=int, help="links to this job")
        add("--user", help="links to jobs created by this user, or bound to it")
        add("--tenant", help="links to jobs of this tenant")
        add("--all", action="store_true", help="every link")
        add("--before", help="only links made before this time (ISO 8601); the default is now")
        add("--database", help="alias of the jobs' database")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke them."""
        whose = {name: options[name] for name in ("job", "user", "tenant")}
        if (set(whose.values()) == {None}) != options["all"]:
            raise CommandError("give --job, --user or --tenant, or else --all")
        before = None if options["before"] is None else _read_time(options["before"])
        using = jobs_database(options["database"])
        with acting_as_shell_user():
            revoke_status_links(**whose, before=before, using=using)
        self.stdout.write("revoked")


def _read_time(text: str) -> datetime:
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise CommandError(f"--before {text!r} is no time, such as 2026-11-25T12:00:00+00:00")
    return timezone.make_aware(moment) if timezone.is_naive(moment) else moment
