"""manage.py tenantqueue export"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from ...models import TenantQueue
from ...status.tenant_export import export_jobs
from ...text import number_of
from ..database import jobs_database
from ..subcommand import Subcommand


class Export(Subcommand):
    """Prints the jobs of a tenant."""

    help = "Print all jobs of a tenant as lines of JSON, with the history."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="exact tenant")
        parser.add_argument("--database", help="alias of the jobs' database, or of a replica of it")

    def handle(self, *args: Any, **options: Any) -> None:
        using, tenant = jobs_database(options["database"]), options["tenant"]
        if not TenantQueue.objects.using(using).filter(tenant=tenant).exists():
            raise CommandError(f"tenant {tenant!r} has no queue")
        total = 0
        for count, lines in export_jobs(using, tenant):
            self.stdout.write(lines, ending="")
            total += count
        self.stderr.write(f"{number_of('job', total)} of tenant {tenant!r}", self.style.SUCCESS)
