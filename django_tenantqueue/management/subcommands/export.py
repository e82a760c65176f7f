"""manage.py tenantqueue export"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from ...databases import databases_about
from ...models import TenantQueue
from ...status.tenant_export import export_jobs
from ...text import number_of
from ..database import jobs_database, telling_database_errors
from ..subcommand import Subcommand


class Export(Subcommand):
    """Prints the jobs of a tenant."""

    help = "Print all jobs of a tenant as lines of JSON, with the history."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="exact tenant")
        parser.add_argument("--database", help="alias of the jobs' database, or of a replica of it")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, given = options["tenant"], options["database"]
        places = databases_about(tenant) if given is None else [jobs_database(given)]
        total, has_queue = 0, False
        for using in places:
            with telling_database_errors(using):
                if not TenantQueue.objects.using(using).filter(tenant=tenant).exists():
                    continue
                has_queue = True
                for count, lines in export_jobs(using, tenant):
                    self.stdout.write(lines, ending="")
                    total += count
        if not has_queue:
            raise CommandError(f"tenant {tenant!r} has no queue")
        self.stderr.write(f"{number_of('job', total)} of tenant {tenant!r}", self.style.SUCCESS)
