"""manage.py routing"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from django_tenantqueue.management.database import acting_as_shell_user, jobs_database
from django_tenantqueue.management.printing import PrintingCommand

from ... import services
from ...models import Routing

COLUMNS = ("id", "tenant", "pattern", "queue")
"""What JSON tells of each routing."""


class Command(PrintingCommand):
    """Lists, sets and removes routings."""

    help = "List, set or remove routings: which queue takes new jobs of a task or a category."
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments and options."""
        super().add_arguments(parser)
        add = parser.add_argument
        add("action", choices=("list", "set", "remove"), help="what to do")
        add("pattern", nargs="?", help="the name of a task or a category; * stands for any text")
        add("queue", nargs="?", help="with set: the queue of new jobs of that name")
        add("--tenant", help="of this tenant; the default is every tenant")
        add("--database", help="alias of the jobs' database")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and print the routings that there are then, or the one that was set."""
        using = jobs_database(options["database"])
        action, pattern, queue = (options[name] for name in ("action", "pattern", "queue"))
        if (pattern is None) != (action == "list") or (queue is None) != (action != "set"):
            raise CommandError("give: list | set PATTERN QUEUE | remove PATTERN")
        tenant = options["tenant"]
        if action == "list":
            self._print(services.list_routings(tenant=tenant, using=using), options)
            return
        with acting_as_shell_user():
            if action == "set":
                row = services.make_routing(pattern, queue, tenant=tenant or "", using=using)
                self._print([row], options)
            elif not self._remove(pattern, tenant or "", using):
                raise CommandError(f"there is no routing of {pattern!r} for tenant {tenant!r}")
            elif self.wants_json(options):
                self._print([], options)

    def _remove(self, pattern: str, tenant: str, using: str) -> list[int]:
        rows = Routing.objects.using(using).filter(tenant=tenant, pattern=pattern)
        return services.delete_routings(rows, using=using)

    def _print(self, rows: list[Routing], options: dict[str, Any]) -> None:
        if self.wants_json(options):
            found = [{name: getattr(row, name) for name in COLUMNS} for row in rows]
            self.print_json({"routings": found})
            return
        for row in rows:
            self.stdout.write(f"{row.tenant or '(every tenant)'}  {row.pattern} → {row.queue}")
