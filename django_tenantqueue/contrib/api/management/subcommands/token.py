"""manage.py tenantqueue token"""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from django_tenantqueue.conf import main_database
from django_tenantqueue.databases import are_several
from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand
from django_tenantqueue.settings import MOST_DAYS

from ...models import HIGHEST_NUMBER, LOWEST_NUMBER, ApiToken
from ...tokens import make_token


class CreateToken(Subcommand):
    help = "Create a token of the HTTP API and print it. It cannot be shown again."
    several = "main"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "token_name",
            metavar="NAME",
            help="the client that will use the token, shown in the list of changes",
        )
        add("--tenant", help="exact tenant; '' for jobs without a tenant")
        add("--all-tenants", action="store_true", help="allow every tenant (in place of --tenant)")
        add(
            "--scope",
            action="append",
            choices=ApiToken.Scope.values,
            help=f"allow one of {', '.join(ApiToken.Scope.values)}; may be repeated (default: read "
            "and submit)",
        )
        add(
            "--queue",
            action="append",
            metavar="QUEUE",
            help="allow this queue, with * for any text; may be repeated (default: existing "
            "queues of the tenant, and those that a task or the settings name)",
        )
        add(
            "--priorities",
            nargs=2,
            type=int,
            metavar=("FROM", "TO"),
            default=(LOWEST_NUMBER, HIGHEST_NUMBER),
            help=f"allow these priorities (default: {LOWEST_NUMBER} {HIGHEST_NUMBER})",
        )
        add("--days", type=int, metavar="DAYS", help="expire after this number of days")
        add("--per-minute", type=int, metavar="N", help="maximum number of requests per minute")
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        days = options["days"]
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise CommandError(f"--days {days}: it must be from 1 to {MOST_DAYS}", returncode=2)
        if (options["tenant"] is not None) == options["all_tenants"]:
            raise CommandError("give either --tenant or --all-tenants", returncode=2)
        using = jobs_database(options["database"])
        if are_several() and using != main_database():
            raise CommandError(
                f"--database={using!r}: all tokens are in the database {main_database()!r}",
                returncode=2,
            )
        token, secret = make_token(
            options["token_name"],
            tenant=options["tenant"],
            scopes=options["scope"] or (ApiToken.Scope.READ, ApiToken.Scope.SUBMIT),
            expires_at=None if days is None else timezone.now() + timedelta(days=days),
            requests_per_minute=options["per_minute"],
            queues=options["queue"] or (),
            priorities=tuple(options["priorities"]),
            using=using,
        )
        if options["format"] == "json":
            self.print_json({"id": token.pk, "token": secret})
            return
        self.stdout.write(secret)
