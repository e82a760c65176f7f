"""manage.py tenantqueue bulk"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from ... import bulk
from ...conf import get_settings
from ...databases import all_databases
from ...exceptions import InvalidArgument
from ...operations.bulk_actions import ACTIONS, find_action
from ...status.job_filters import Asked, Count, count_matching, read_filters
from ...text import number_of
from ..subcommand import Subcommand

TIME = "2026-11-24T02:00, or 24h"
HELP = {
    "created_from": f"created then or later: {TIME}",
    "created_to": "created before",
    "ended_from": "ended then or later",
    "ended_to": "ended before",
    "label": "exact label",
    "argument": "exact value of a searchable argument: invoice=4711",
    "created_by": "the person or system that requested the jobs",
    "limit_user": "the user of a user limit; add --tenant",
    "session": "key of a session; add --tenant",
    "worker": "id of a worker",
    "priority": "the priority of the jobs",
    "error": "class of the last error",
}
"""What the options of the other filters say."""
DESTS = {"priority": "of_priority"}
"""The filters whose options have another name: --priority is the new one."""
FILTERS = ("state", "tenant", "queue", "queue_id", "task", *HELP)
"""Options that set the filters of the same names."""
NONE = Count(0, is_exact=True)
TO_TENANT = "the tenant that jobs move to, for move (default: that of each job; empty: no tenant)"
LOOKED = 20
"""Pages of jobs that are looked at for one that matches, before a job does so."""


class Bulk(Subcommand):
    """Starts a bulk action, or counts what it would change."""

    help = "Change all jobs that match. A job in the queue ADMIN_QUEUE does it."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("action", choices=list(ACTIONS), metavar="ACTION", help=", ".join(ACTIONS))
        add("--state", help="a state, or unfinished, finished, or active: queued or running")
        add("--tenant", help="exact tenant")
        add("--queue", help="exact name of queues")
        add("--queue-id", help="id of one tenant queue")
        add("--task", help="exact name of a task")
        for name, text in HELP.items():
            add(f"--{DESTS.get(name, name).replace('_', '-')}", help=text)
        add("--all", action="store_true", help="required if there is no filter")
        add("--priority", type=int, help="the new priority, for change_priority")
        add("--to-queue", help="the queue that jobs move to, for move")
        add("--to-tenant", help=TO_TENANT)
        add("--dry-run", action="store_true", help="count the jobs, and change nothing")
        self.add_format(parser)
        add("--database", help="alias of the jobs' database (must be TENANTQUEUE['DATABASE'])")

    def handle(self, *args: Any, **options: Any) -> None:
        using = get_settings().database
        if options["database"] not in (None, *all_databases()):
            raise CommandError(
                f"--database={options['database']!r} is not TENANTQUEUE['DATABASE'], which is "
                f"{using!r}: workers run bulk actions there",
                returncode=2,
            )
        given = {name: options[DESTS.get(name, name)] for name in FILTERS}
        filters = {name: value for name, value in given.items() if value is not None}
        if not filters and not options["all"]:
            raise CommandError("no filter is given: add one, or --all", returncode=2)
        action, values = options["action"], _values(options)
        asked = _read(using, action, filters, values)
        found: dict[str, Any]
        if options["dry_run"]:
            count = count_matching(using, asked, most=bulk.COUNTED_TO)
            text, found = _count_text(count), {"matching": asdict(count)}
        elif count_matching(using, asked, most=1, pages=LOOKED) == NONE:
            text, found = "0 jobs match and can be changed: no job was started", {"job": None}
        else:
            job = bulk.start(action, filters, values)
            text = (
                f"job #{job.pk} performs the action once a worker runs it: see its page in the "
                "admin"
            )
            found = {"job": job.pk}
        if options["format"] == "json":
            self.print_json(found)
        else:
            self.stdout.write(text)


def _values(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {
        "priority": options["priority"],
        "queue": options["to_queue"],
        "tenant": options["to_tenant"],
    }
    return {name: value for name, value in given.items() if value is not None}


def _read(using: str, action: str, filters: Mapping[str, str], values: Mapping[str, Any]) -> Asked:
    chosen = find_action(action)
    chosen.check(values)
    asked = read_filters(using, bulk.clean_filters(filters))
    if asked.problem:
        raise InvalidArgument(asked.problem)
    return asked.narrowed(chosen.states)


def _count_text(count: Count) -> str:
    more = "" if count.is_exact else "more than "
    match = "matches" if count.jobs == 1 and count.is_exact else "match"
    return f"{more}{number_of('job', count.jobs)} {match} and can be changed"
