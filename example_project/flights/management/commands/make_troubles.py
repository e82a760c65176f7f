"""manage.py make_troubles"""

from typing import Any

from django.core.management.base import BaseCommand

from example_project.flights.troubles import make_troubles


class Command(BaseCommand):
    """Gives operators something to find and mend."""

    help = "Make troubles to find and mend in the admin, while the demo runs."

    def handle(self, *args: Any, **options: Any) -> None:
        """Make them and say which."""
        for line in make_troubles():
            self.stdout.write(line)
