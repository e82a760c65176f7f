"""manage.py tenantqueue alerts"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Q
from django.utils import timezone

from django_tenantqueue import control
from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand
from django_tenantqueue.management.subcommands.mute import add_end_and_reason, end_text
from django_tenantqueue.text import read_number

from ...channels import CHANNELS
from ...messages import make_message
from ...models import AlertRule


def find_rule(using: str, text: str) -> AlertRule:
    """Return the rule of a name or number. Raises CommandError."""
    wanted = Q(name=text)
    if (number := read_number(text)) is not None:
        wanted |= Q(pk=number)
    rules = list(AlertRule.objects.using(using).filter(wanted).order_by("pk"))
    if not rules:
        raise CommandError(f"There is no alert rule {text!r}.")
    if len(rules) > 1:
        numbers = ", ".join(f"{rule.pk} ({rule})" for rule in rules)
        raise CommandError(f"Several alert rules have this name. Give a number: {numbers}.")
    return rules[0]


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
        rule = find_rule(using, options["rule"])
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


class MuteRule(Subcommand):
    """Mutes the messages of a rule."""

    help = "Send no message of an alert rule until a time. Its alerts are still recorded."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("rule", metavar="RULE", help="name or number of the rule")
        add_end_and_reason(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Mute, and print until when."""
        using = jobs_database(options["database"])
        rule = find_rule(using, options["rule"])
        control.mute(rule, until=options["until"], reason=options["reason"], using=using)
        rule.refresh_from_db()
        assert rule.muted_until is not None
        self.stdout.write(f"{rule}: muted until {end_text(rule.muted_until)}")


class UnmuteRule(Subcommand):
    """Ends the mute of a rule."""

    help = "Send messages of a muted alert rule again."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("rule", metavar="RULE", help="name or number of the rule")
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Unmute, and print what was done."""
        using = jobs_database(options["database"])
        rule = find_rule(using, options["rule"])
        done = control.unmute(rule, using=using)
        self.stdout.write(f"{rule}: {'unmuted' if done.changed else 'was not muted'}")
