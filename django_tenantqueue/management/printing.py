"""Commands that print a report: as text or as JSON, also to a reader that stops reading."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder


class PrintingCommand(BaseCommand):
    """Has `--format text|json`, and ends quietly when its reader (`head`) has read enough."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options of the output."""
        parser.add_argument(
            "--format", choices=("text", "json"), default="text", help="text (the default) or json"
        )
        parser.add_argument(
            "--json",
            dest="format",
            action="store_const",
            const="json",
            help="print one JSON object, for machines: --format json",
        )

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command, and write all that it has printed."""
        try:
            done: str | None = super().execute(*args, **options)
            self.stdout.flush()  # here, where a reader that is gone can be told from a failure
        except BrokenPipeError:
            # what is still in the buffer would be an error at the end of the process
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None
        return done

    def wants_json(self, options: dict[str, Any]) -> bool:
        """Whether JSON is asked for; `call_command(…, json=True)` arrives as a format, too."""
        return options["format"] in ("json", True)

    def print_json(self, values: Any) -> None:
        """Print one JSON object."""
        self.stdout.write(json.dumps(values, cls=DjangoJSONEncoder, indent=2))
