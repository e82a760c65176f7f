"""manage.py tenantqueue schedules list"""

from __future__ import annotations

import argparse
from typing import Any

from django.utils import timezone

from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand
from django_tenantqueue.status.figures import duration_text

from ...models import Schedule

COLUMNS = (
    *("id", "name", "tenant", "queue", "task", "kind", "expression", "time_zone", "enabled"),
    *("next_at", "last_at", "failures", "last_error"),
)


class ListSchedules(Subcommand):
    help = "List the schedules: next run, expression and last error of each."
    several = "each"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add = parser.add_argument
        add("--tenant", help="only schedules of this tenant; '' for jobs without a tenant")
        add("--failing", action="store_true", help="only schedules that failed at their last tick")
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each schedule."""
        rows = Schedule.objects.using(jobs_database(options["database"]))
        if options["tenant"] is not None:
            rows = rows.filter(tenant=options["tenant"])
        if options["failing"]:
            rows = rows.filter(failures__gt=0)
        if options["format"] == "json":
            found = list(rows.order_by("next_at", "pk").values(*COLUMNS))
            self.print_json({"schedules": found})
            return
        now = timezone.now()
        for row in rows.order_by("next_at", "pk").iterator(chunk_size=1000):
            if not row.enabled:
                then = "disabled"
            elif row.next_at is None:
                then = "ended"
            elif row.next_at > now:
                then = f"in {duration_text(float(int((row.next_at - now).total_seconds())))}"
            else:
                then = "due"
            error = f"  ERROR {' '.join(row.last_error.split())[:100]}" if row.failures else ""
            self.stdout.write(f"{then:<12} {row.kind} {row.expression}  {row}  {row.task}{error}")
