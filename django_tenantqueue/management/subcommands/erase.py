"""manage.py tenantqueue erase"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from django.core.management.base import CommandError

from ...conf import database
from ...databases import databases_about
from ...models import TenantQueue
from ...operations.erasure import erase_tenant
from ...text import number_of
from ..database import jobs_database, telling_database_errors
from ..numbers import seconds
from ..subcommand import Subcommand


def _answer(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        raise CommandError("nothing was deleted: use --no-input to skip the question") from None


class Erase(Subcommand):
    """Deletes all that is stored about a tenant."""

    help = "Delete all rows of a tenant: jobs, queues and others."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--tenant", required=True, help="exact tenant")
        add("--stop", action="store_true", help="ask the running jobs of the tenant to stop")
        add(
            "--wait",
            type=seconds,
            default=60.0,
            metavar="SECONDS",
            help="with --stop: longest wait for the end of these jobs (default: 60)",
        )
        add("--no-input", action="store_true", help="do not ask for confirmation")
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, queues, report = options["tenant"], 0, Counter[str]()
        given = options["database"]
        places = databases_about(tenant) if given is None else [jobs_database(given)]
        for using in places:
            with telling_database_errors(using):
                queues += TenantQueue.objects.using(using).filter(tenant=tenant).count()
        if not options["no_input"]:
            text = (
                f"All rows of tenant {tenant!r}, with {number_of('queue', queues)}, are deleted "
                "permanently.\nType the name of the tenant to continue: "
            )
            if _answer(text) != tenant:
                raise CommandError("nothing was deleted")
        for using in places:
            with telling_database_errors(using), database(using):
                report.update(
                    erase_tenant(tenant, using=using, stop=options["stop"], wait=options["wait"])
                )
        if options["format"] == "json":
            self.print_json({"tenant": tenant, "rows": report})
            return
        for table, count in report.items():
            self.stdout.write(f"{count:>12,}  {table}")
        self.stdout.write(f"{sum(report.values()):>12,}  rows of tenant {tenant!r} were deleted")
