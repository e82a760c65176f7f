"""manage.py load_flights"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from example_project.flights.loading import load
from example_project.flights.source import DataMissingError


class Command(BaseCommand):
    help = "Load the flights of 2013 into the database, once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--most", type=int, metavar="N", help="load at most N flights")

    def handle(self, *args: Any, **options: Any) -> None:
        """Load, and print the numbers of rows."""
        try:
            loaded = load(options["most"])
        except DataMissingError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"{loaded.flights:,} flights of {loaded.airlines} airlines, "
            f"{loaded.weather:,} hours of weather" + (" (loaded before)" if loaded.already else "")
        )
