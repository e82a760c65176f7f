"""manage.py workerhealth"""

from __future__ import annotations

import argparse
import socket
from typing import Any

from django.core.management.base import BaseCommand, no_translations
from django.db import DatabaseError
from django.utils.connection import ConnectionDoesNotExist

from ...conf import get_settings
from ...status.worker_health import Health, judge_file, judge_rows
from ..numbers import seconds


class Command(BaseCommand):
    """Answers probes by its exit code."""

    help = "Exit with 0 if a worker of this machine is alive, or with 1 and the reason."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--heartbeat-file",
            metavar="PATH",
            help="read the file that `runworker --heartbeat-file PATH` writes, not the database",
        )
        add(
            "--max-age",
            type=seconds,
            default=30.0,
            metavar="SECONDS",
            help="maximum age of the last heartbeat (default 30)",
        )
        add(
            "--readiness", action="store_true", help="also require that the worker accepts new jobs"
        )
        add("--host", help="without a file: host of the workers (default: this one)")
        add("--name", default="", help="without a file: prefix of the workers' names")
        add("--database", help="without a file: alias of the jobs' database")

    @no_translations  # its words are English, and those of the report with them
    def handle(self, *args: Any, **options: Any) -> None:
        health = self._judge(options)
        if health.healthy:
            self.stdout.write(f"healthy: {health.reason}")
        else:
            self.stderr.write(f"unhealthy: {health.reason}")
            raise SystemExit(1)

    def _judge(self, options: dict[str, Any]) -> Health:
        judged = {"max_age": options["max_age"], "readiness": options["readiness"]}
        if options["heartbeat_file"] is not None:
            return judge_file(options["heartbeat_file"], **judged)
        using = options["database"] or get_settings().database
        host = options["host"] or socket.gethostname()
        try:
            return judge_rows(using, host=host, name=options["name"], **judged)
        except (DatabaseError, ConnectionDoesNotExist) as error:
            reason = " ".join(str(error).split())
            return Health(False, f"the jobs' database {using!r} cannot be used: {reason}")
