"""manage.py tenantqueue mute, unmute"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from ... import control
from ...models import Mute
from ...status.conditions import conditions
from ..database import jobs_database
from ..numbers import duration, moment
from ..subcommand import Subcommand


def add_end_and_reason(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say until when something is muted, and why."""
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument(
        "--for", dest="until", type=duration, metavar="TIME", help="as in 30m, 1h or 2d"
    )
    end.add_argument(
        "--until", type=moment, metavar="TIME", help="as in 2026-05-20T15:30 or 2026-05-20"
    )
    parser.add_argument("--reason", required=True, help="shown to the other operators")


def end_text(until: datetime) -> str:
    """Return when a mute ends, in the current time zone."""
    return f"{timezone.localtime(until):%Y-%m-%d %H:%M %Z}"


class MuteProblem(Subcommand):
    """Mutes a problem."""

    help = "Fold a problem on the dashboard and in `status` until a time."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_problem(parser)
        add_end_and_reason(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        using = jobs_database(options["database"])
        given = {"until": options["until"], "reason": options["reason"]}
        done = control.mute(options["problem"], **_named(options), **given, using=using)
        for row in Mute.objects.using(using).filter(pk__in=done.changed):
            self.stdout.write(f"{row}: muted until {end_text(row.until)}")


class UnmuteProblem(Subcommand):
    """Ends mutes of a problem."""

    help = "End the mutes of a problem before their time."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_problem(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        using = jobs_database(options["database"])
        done = control.unmute(options["problem"], **_named(options), using=using)
        number = len(done.changed)
        self.stdout.write(f"{number} ended" if number else "nothing was changed: it was not muted")


def _add_problem(parser: argparse.ArgumentParser) -> None:
    codes = [str(condition.code) for condition in conditions() if condition.find is not None]
    parser.add_argument("problem", metavar="PROBLEM", help=f"one of {', '.join(codes)}")
    parser.add_argument("--tenant", help="only of objects of this tenant")
    parser.add_argument(
        "--name", default="", help="only of the queue, task, session, worker or host of this name"
    )


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": options["name"], "tenant": options["tenant"]}
