"""manage.py tenantqueue routing"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand

from ... import services
from ...models import Routing

COLUMNS = ("id", "tenant", "pattern", "queue")
TENANT = "tenant of the routing; '' for jobs without a tenant (default: every tenant)"
PATTERN = "name of a task or a Fireworq category; * matches any text"


class RoutingSubcommand(Subcommand):
    def _print(self, rows: list[Routing], options: dict[str, Any]) -> None:
        if options["format"] == "json":
            found = [{name: getattr(row, name) for name in COLUMNS} for row in rows]
            self.print_json({"routings": found})
            return
        for row in rows:
            whose = "(every tenant)" if row.tenant is None else row.tenant or "(no tenant)"
            self.stdout.write(f"{whose}  {row.pattern} → {row.queue}")


class ListRoutings(RoutingSubcommand):
    help = "List the routings. Each sets the queue of new jobs of a task or a pattern."
    several = "each"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--tenant", help="only routings of this tenant; '' for jobs without a tenant"
        )
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Print a line for each routing."""
        using = jobs_database(options["database"])
        rows = Routing.objects.using(using)
        if options["tenant"] is not None:
            rows = rows.filter(tenant=options["tenant"])
        self._print(list(rows), options)


class SetRouting(RoutingSubcommand):
    help = "Route new jobs of a task or a pattern to a queue."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments and options."""
        add = parser.add_argument
        add("pattern", metavar="PATTERN", help=PATTERN)
        add("routed_to", metavar="QUEUE", help="queue of new jobs with this name")
        add("--tenant", help=TENANT)
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Set it."""
        using, tenant = jobs_database(options["database"]), options["tenant"]
        pattern, queue = options["pattern"], options["routed_to"]
        row = services.make_routing(pattern, queue, tenant=tenant, using=using)
        self._print([row], options)


class RemoveRouting(Subcommand):
    help = "Remove the routing of a task or a pattern."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments and options."""
        add = parser.add_argument
        add("pattern", metavar="PATTERN", help=PATTERN)
        add("--tenant", help=TENANT)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove it, and say so."""
        using, tenant = jobs_database(options["database"]), options["tenant"]
        pattern = options["pattern"]
        rows = Routing.objects.using(using).filter(tenant=tenant, pattern=pattern)
        if not services.delete_routings(rows, using=using):
            whose = "every tenant" if tenant is None else f"tenant {tenant!r}"
            raise CommandError(f"there is no routing {pattern!r} of {whose}")
        self.stdout.write(f"routing {pattern!r} was removed")
