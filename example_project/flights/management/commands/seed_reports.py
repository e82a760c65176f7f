"""manage.py seed_reports"""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from example_project.flights.seeding import keep_seeding, seed_batch

RATES = {"light": 1.0, "normal": 5.0, "heavy": 16.0}


class Command(BaseCommand):
    help = "Request reports for all airlines until stopped, or a fixed number with --count."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--load",
            choices=RATES,
            default="normal",
            help=", ".join(f"{name}: {rate:g}" for name, rate in RATES.items())
            + " reports a second",
        )
        parser.add_argument("--count", type=int, metavar="N", help="request N at once and end")

    def handle(self, *args: Any, **options: Any) -> None:
        """Request reports."""
        if options["count"] is not None:
            batch = seed_batch(options["count"]).save()
            self.stdout.write(f"requested {batch}; check it with: manage.py check_batch {batch.pk}")
            return
        over = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: over.set())
        made = keep_seeding(RATES[options["load"]], over.is_set)
        self.stdout.write(f"requested {made} reports")
