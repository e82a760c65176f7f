"""manage.py check_batch"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from example_project.flights.batches import as_text, check
from example_project.flights.models import Batch


class Command(BaseCommand):
    help = (
        "Check a batch of the seeder: each report must have run as often and ended as expected, "
        "and never more at once than the queues have slots now."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("batch", type=int, nargs="?", help="its number (default: the newest)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, and print a table."""
        batches = Batch.objects.all()
        if options["batch"] is not None:
            batches = batches.filter(pk=options["batch"])
        batch = batches.first()
        if batch is None:
            raise CommandError("There is no such batch. Create one with: make demo ARGS=--once")
        findings = check(batch)
        self.stdout.write(as_text(findings))
        if findings.problems:
            raise CommandError(f"{batch}: {len(findings.problems)} problems")
