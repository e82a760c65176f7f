"""What the subcommands of `manage.py tenantqueue` share: options, who acts, and their errors."""

from __future__ import annotations

import errno
import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder
from django.db import InterfaceError, OperationalError, connections

from ..conf import database
from ..databases import all_databases, are_several, database_of_call
from .database import acting_as_shell_user, telling_database_errors

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Numbers of errors of a file that takes no more."""
JOBS = ("id", "ids", "job")
"""Arguments with the ids of jobs."""


def _drop_output() -> None:
    """Drop what is still in the buffer: it would be an error at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Subcommand(BaseCommand):
    """A command of Django below `manage.py tenantqueue`. `help` is one line of its list.

    The list of changes names the user of the shell. What the package or the database refuses is an
    error with exit code 1. It ends quietly when its reader (`head`) has read enough.
    """

    requires_system_checks = ["tenantqueue"]
    several: ClassVar[Literal["refuse", "each", "main"]] = "refuse"
    """What a call does that names neither a database nor a row, where jobs are in several."""
    _documents: dict[str, Any] | None = None
    """What was printed as JSON by each database."""
    _alias = ""

    def add_format(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--format", choices=("text", "json"), default="text", help="text (the default) or json"
        )

    def add_database(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--database", help="alias of the jobs' database (default: TENANTQUEUE['DATABASE'])"
        )

    def database_of(self, options: Mapping[str, Any]) -> str | None:
        """Return the database of a call without `--database`; None: the main one."""
        if self.several == "main":
            return None
        jobs = [row for name in JOBS if (row := options.get(name))]
        monitor, tenant = options.get("monitor") or None, options.get("tenant")
        if not jobs and monitor is None and tenant is None:
            return None
        verb = type(self).__name__.lower()
        return database_of_call(verb, None, *jobs, monitor=monitor, tenant=tenant)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command, and write all that it has printed."""
        try:
            done = self._execute(*args, **options)
            self.stdout.flush()  # here, to tell a closed pipe from a failure
        except BrokenPipeError:
            _drop_output()
            return None
        except OSError as error:
            if error.errno not in FULL:
                raise
            _drop_output()
            raise CommandError(f"the output cannot be written: {error.strerror}") from error
        return done

    def _execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command in the database that is meant, or in each of them."""
        using = options.get("database")
        if using is None and "database" in options and are_several():
            with acting_as_shell_user():
                using = self.database_of(options)
            if using is None and self.several == "each":
                self._execute_in_each(*args, **options)
                return None
            if using is None and self.several == "refuse":
                raise CommandError(
                    f"jobs are in the databases {', '.join(all_databases())}: give --database, and "
                    "run the command once for each",
                    returncode=2,
                )
        known = using if are_several() and using in connections.settings else None
        with acting_as_shell_user(), telling_database_errors(using), database(known):
            done: str | None = super().execute(*args, **options)
        return done

    def _execute_in_each(self, *args: Any, **options: Any) -> None:
        """Run the command in each database that can be used; raise CommandError for the others."""
        failed = []
        if options.get("stdout"):
            self.stdout = OutputWrapper(options["stdout"])
        self._documents = {} if options.get("format") == "json" else None
        for alias in all_databases():
            if self._documents is None:
                self.stdout.write(f"database {alias}")
            self._alias = alias
            try:
                self._execute(*args, **{**options, "database": alias})
            except CommandError as error:
                if not isinstance(error.__cause__, OperationalError | InterfaceError):
                    raise
                failed.append(str(error))
        if self._documents is not None:
            documents, self._documents = self._documents, None
            self.print_json({"databases": documents})
        if failed:
            raise CommandError("\n".join(failed))

    def print_json(self, values: Any) -> None:
        if self._documents is not None:
            self._documents[self._alias] = values
            return
        self.stdout.write(json.dumps(values, cls=DjangoJSONEncoder, indent=2))
