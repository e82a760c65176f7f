"""manage.py make_troubles"""

from typing import Any

from django.core.management.base import BaseCommand

from example_project.flights.troubles import make_troubles


class Command(BaseCommand):
    help = "Create problems to find and fix in the admin, while the demo runs."

    def handle(self, *args: Any, **options: Any) -> None:
        """Create them and print a line about each."""
        for line in make_troubles():
            self.stdout.write(line)
