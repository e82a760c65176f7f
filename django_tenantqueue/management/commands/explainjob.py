"""manage.py explainjob"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError, connections
from django.utils.translation import gettext

from ...conf import get_settings
from ...models import Job
from ...status.explanation import Cause, Explanation, explain
from ...status.explanation.words import moment_text


def _job_id(text: str) -> int:
    number = text.removeprefix("#").replace(",", "")
    if not (number.isascii() and number.isdecimal()) or int(number[:20]) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a job")
    return int(number)


class Command(BaseCommand):
    """Prints why one job does not run."""

    help = "Say why a job does not run: every cause, the worst first, and what would change it."
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add = parser.add_argument
        add("id", type=_job_id, metavar="ID", help="the number of the job: 1753 or #1753")
        add("--json", action="store_true", help="print one JSON object, for machines")
        add("--database", help="alias of the jobs' database (default: TENANTQUEUE['DATABASE'])")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the answer."""
        using = options["database"] or get_settings().database
        if using not in connections.settings:
            raise CommandError(
                f"--database={using!r} is not in DATABASES, which has "
                f"{', '.join(sorted(connections.settings))}",
                returncode=2,
            )
        try:
            job = Job.objects.using(using).find(options["id"])
            answer = None if job is None else explain(using, job)
        except DatabaseError as error:
            raise CommandError(
                f"the jobs' database {using!r} cannot be used: {str(error).strip()}\n"
                "Is PostgreSQL running, and has `manage.py migrate` been run?"
            ) from error
        if answer is None:
            raise CommandError(
                f"job #{options['id']} does not exist in the database {using!r}: it was never "
                "committed, or its month of the history was dropped"
            )
        if options["json"]:
            self.stdout.write(json.dumps(asdict(answer), cls=DjangoJSONEncoder, indent=2))
            return
        for line in _lines(answer):
            self.stdout.write(line)


def _lines(answer: Explanation) -> Iterator[str]:
    yield f"#{answer.job_id} {answer.name} ({answer.state})"
    yield answer.sentence
    for cause in answer.causes:
        yield f"- {cause.sentence}{_where(cause)}"
        if cause.done_by is not None:
            yield "    " + gettext("Last set by %(name)s, at %(at)s.") % {
                "name": cause.done_by.text,
                "at": moment_text(cause.done_by.at),
            }
        if cause.remedy:
            yield f"    → {cause.remedy}"


def _where(cause: Cause) -> str:
    if cause.target is None or cause.target.kind == "job":
        return ""
    return f" ({cause.target.kind}: {cause.target.label})"
