"""manage.py tenantqueue alerts"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Q
from django.utils import timezone

from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand
from django_tenantqueue.text import read_number

from ...channels import CHANNELS
from ...messages import make_message
from ...models import AlertRule


class SendTestMessage(Subcommand):
    """Sends a test message to the recipients of a rule, from this process."""

    help = "Send a test message to each recipient of an alert rule, without a worker."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("rule", metavar="RULE", help="name or number of the rule")
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Send, and print the result of each channel; fail if one did."""
        using = jobs_database(options["database"])
        wanted = Q(name=options["rule"])
        if (number := read_number(options["rule"])) is not None:
            wanted |= Q(pk=number)
        rules = list(AlertRule.objects.using(using).filter(wanted).order_by("pk"))
        if not rules:
            raise CommandError(f"There is no alert rule {options['rule']!r}.")
        if len(rules) > 1:
            numbers = ", ".join(f"{rule.pk} ({rule})" for rule in rules)
            raise CommandError(f"Several alert rules have this name. Give a number: {numbers}.")
        rule = rules[0]
        if not rule.channels:
            raise CommandError(f"The rule {rule} has no recipients: set them in the admin.")
        message = make_message(rule, now=timezone.now(), test=True)
        failed = False
        for channel in rule.channels:
            try:
                CHANNELS[channel](rule, message)
            except Exception as error:  # noqa: BLE001 - whatever the backend of e-mails raises
                failed = True
                self.stderr.write(f"{channel}: {type(error).__name__}: {error}")
            else:
                self.stdout.write(f"{channel}: sent")
        if failed:
            raise CommandError("A test message was not sent.")
