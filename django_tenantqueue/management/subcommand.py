"""What the subcommands of `manage.py tenantqueue` share: options, who acts, and their errors."""

from __future__ import annotations

import errno
import json
import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from .database import acting_as_shell_user, telling_database_errors

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Numbers of errors of a file that takes no more."""


def _drop_output() -> None:
    """Drop what is still in the buffer: it would be an error at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Subcommand(BaseCommand):
    """A command of Django below `manage.py tenantqueue`. `help` is one line of its list.

    The list of changes names the user of the shell. What the package or the database refuses is an
    error with exit code 1. It ends quietly when its reader (`head`) has read enough.
    """

    requires_system_checks = ["tenantqueue"]

    def add_format(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--format", choices=("text", "json"), default="text", help="text (the default) or json"
        )

    def add_database(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--database", help="alias of the jobs' database (default: TENANTQUEUE['DATABASE'])"
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command, and write all that it has printed."""
        try:
            with acting_as_shell_user(), telling_database_errors(options.get("database")):
                done: str | None = super().execute(*args, **options)
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

    def print_json(self, values: Any) -> None:
        self.stdout.write(json.dumps(values, cls=DjangoJSONEncoder, indent=2))
