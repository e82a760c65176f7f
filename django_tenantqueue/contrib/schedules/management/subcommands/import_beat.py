"""manage.py tenantqueue schedules import-beat"""

from __future__ import annotations

import argparse
from typing import Any

from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from django_tenantqueue.exceptions import TenantQueueError
from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand

from ...beat import PERIODIC_TASK, read_periodic_task
from ...models import Schedule
from ...services import add_schedule


class ImportBeat(Subcommand):
    help = "Import the periodic tasks of django-celery-beat, disabled at first."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        add = parser.add_argument
        add(
            "--enable",
            action="store_true",
            help="enable schedules that are enabled in django-celery-beat",
        )
        add(
            "--dry-run",
            action="store_true",
            help="report what would be imported, and import nothing",
        )
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Import row by row, and print what is left out."""
        try:
            beat: Any = apps.get_model(*PERIODIC_TASK)
        except LookupError:
            raise CommandError("django_celery_beat is not in INSTALLED_APPS") from None
        using = jobs_database(options["database"])
        known = set(Schedule.objects.using(using).filter(tenant="").values_list("name", flat=True))
        rows = beat._default_manager.select_related("crontab", "interval", "clocked", "solar")
        imported = refused = 0
        for row in rows.exclude(task__startswith="celery.").order_by("pk"):
            if row.name in known:
                self.stdout.write(f"{row.name}: skipped, a schedule of this name exists")
                continue
            try:
                made, notes = read_periodic_task(row)
                made.enabled = options["enable"] and row.enabled
                if options["dry_run"]:
                    made.clean()
                else:
                    add_schedule(made, using=using)
            except (TenantQueueError, ValidationError) as error:
                refused += 1
                text = "; ".join(getattr(error, "messages", [str(error)]))
                self.stderr.write(f"{row.name}: not imported: {text}")
                continue
            imported += 1
            for note in notes:
                self.stdout.write(f"{row.name}: {note}")
        word = "would be imported" if options["dry_run"] else "imported"
        self.stdout.write(f"{imported} schedules {word}, {refused} failed")
        if refused:
            raise SystemExit(1)
