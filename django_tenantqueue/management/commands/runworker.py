"""manage.py runworker"""

from __future__ import annotations

import argparse
import os
import socket
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections

from ...checks import check_database
from ...conf import get_settings
from ...operations.queues import unknown_queues
from ...worker.config import WorkerConfig
from ...worker.supervisor import Supervisor, close_inherited


def _at_least(least: int) -> Any:
    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is too few: at least {least}")
        return value

    return number


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0 to 1,000,000")
    return value


def _names(values: list[str] | None) -> tuple[str, ...]:
    return tuple(name for value in values or [] for name in value.split(",") if name)


class Command(BaseCommand):
    """Claims and runs jobs until it is stopped."""

    help = "Run a worker: claim jobs, run them, store how they ended."
    requires_system_checks = ["tenantqueue"]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add = parser.add_argument
        add("--processes", type=_at_least(1), default=1, help="child processes (default 1)")
        add("--threads", type=_at_least(1), default=8, help="threads per child (default 8)")
        add(
            "--async-slots",
            type=_at_least(1),
            default=100,
            help="coroutine jobs at once per child (default 100)",
        )
        add("--queues", action="append", metavar="NAME", help="take only these queues")
        add("--exclude-queues", action="append", metavar="NAME", help="leave these queues alone")
        add("--tenants", action="append", metavar="NAME", help="take only these tenants' jobs")
        add("--burst", action="store_true", help="end when nothing is ready to run")
        add(
            "--shutdown-timeout",
            type=_seconds,
            default=30.0,
            metavar="SECONDS",
            help="time that running jobs have to end (default 30)",
        )
        add("--database", help="alias of the jobs' database (default: TENANTQUEUE['DATABASE'])")
        add("--name", help="name of this worker (default: host-pid)")
        add(
            "--no-maintenance",
            action="store_true",
            help="never do the fleet's maintenance (promote, history) in this worker",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the supervisor."""
        config = self._config(options)
        if config.database not in connections.settings:
            raise CommandError(
                f"--database={config.database!r} is not in DATABASES, which has "
                f"{', '.join(sorted(connections.settings))}"
            )
        problems = check_database(databases=[config.database])
        if problems:
            raise CommandError("\n".join(f"{p.msg}\n{p.hint} ({p.id})" for p in problems))
        try:
            unknown = unknown_queues(config.database, (*config.queues, *config.exclude_queues))
        except DatabaseError as error:
            raise CommandError(
                f"the jobs' database {config.database!r} cannot be used: {str(error).strip()}\n"
                "Is PostgreSQL running, and has `manage.py migrate` been run?"
            ) from error
        for name in unknown:
            self.stderr.write(
                self.style.WARNING(f"no queue is named {name!r} yet; it may be made later")
            )
        verbose = options["verbosity"] > 0
        if verbose:
            self.stdout.write(
                f"worker {config.name}: {config.processes} processes, each with {config.threads} "
                f"threads and {config.async_slots} coroutine slots. Stop with CTRL-C."
            )
        close_inherited()
        supervisor = Supervisor(
            config,
            say=lambda text: self.stderr.write(text) if verbose else None,
        )
        code = supervisor.run()
        if code:
            raise SystemExit(code)

    def _config(self, options: dict[str, Any]) -> WorkerConfig:
        return WorkerConfig(
            database=options["database"] or get_settings().database,
            name=options["name"] or f"{socket.gethostname()}-{os.getpid()}",
            processes=options["processes"],
            threads=options["threads"],
            async_slots=options["async_slots"],
            queues=_names(options["queues"]),
            exclude_queues=_names(options["exclude_queues"]),
            tenants=_names(options["tenants"]),
            burst=options["burst"],
            shutdown_timeout=options["shutdown_timeout"],
            maintenance=not options["no_maintenance"],
        )
