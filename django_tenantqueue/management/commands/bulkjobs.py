"""manage.py bulkjobs"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ... import bulk
from ...conf import get_settings
from ...exceptions import InvalidArgument
from ...operations.bulk_actions import ACTIONS, find_action
from ...status.job_filters import count_matching, read_filters
from ...text import number_of
from ..database import acting_as_shell_user

FILTERS = {
    "state": "state",
    "tenant": "tenant",
    "queue": "queue",
    "queue_id": "queue_id",
    "task": "name",
}
"""Options and the filters that they set."""


class Command(BaseCommand):
    """Starts a bulk action, or counts what it would change."""

    help = "Act on all jobs that match: start a job that does it, in the queue ADMIN_QUEUE."
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add = parser.add_argument
        add("action", choices=list(ACTIONS), metavar="ACTION", help=", ".join(ACTIONS))
        add("--state", help="a state, or unfinished, active, finished")
        add("--tenant", help="exact tenant")
        add("--queue", help="exact name of queues")
        add("--queue-id", help="id of one tenant queue")
        add("--task", help="exact name of a task")
        add("--all", action="store_true", help="needed when there is no filter")
        add("--priority", type=int, help="the new priority, for change_priority")
        add("--to-queue", help="the queue that jobs move to, for move")
        add("--to-tenant", help="the tenant that jobs move to, for move (default: their own)")
        add("--dry-run", action="store_true", help="count the jobs, and change nothing")
        add("--database", help="alias of the jobs' database (must be TENANTQUEUE['DATABASE'])")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the job, or count."""
        using = get_settings().database
        if options["database"] not in (None, using):
            raise CommandError(
                f"--database={options['database']!r} is not TENANTQUEUE['DATABASE'], which is "
                f"{using!r}: workers run bulk actions there",
                returncode=2,
            )
        filters = {name: options[o] for o, name in FILTERS.items() if options[o] is not None}
        if not filters and not options["all"]:
            raise CommandError("no filter is given: add one, or --all", returncode=2)
        with acting_as_shell_user():
            if options["dry_run"]:
                self.stdout.write(_count(using, options["action"], filters, _values(options)))
                return
            job = bulk.start(options["action"], filters, _values(options))
        self.stdout.write(f"job #{job.pk} does it: see its page in the admin")


def _values(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {
        "priority": options["priority"],
        "queue": options["to_queue"],
        "tenant": options["to_tenant"],
    }
    return {name: value for name, value in given.items() if value is not None}


def _count(using: str, action: str, filters: Mapping[str, str], values: Mapping[str, Any]) -> str:
    chosen = find_action(action)
    chosen.check(values)
    asked = read_filters(using, bulk.clean_filters(filters))
    if asked.problem:
        raise InvalidArgument(asked.problem)
    count = count_matching(using, asked.narrowed(chosen.states), most=bulk.COUNTED_TO)
    more = "" if count.is_exact else "more than "
    match = "matches" if count.jobs == 1 and count.is_exact else "match"
    return f"{more}{number_of('job', count.jobs)} {match} and can be changed"
