"""manage.py tenantqueue prune"""

from __future__ import annotations

import argparse
import time
from typing import Any

from django.template.defaultfilters import filesizeformat

from django_tenantqueue.management.database import jobs_database
from django_tenantqueue.management.subcommand import Subcommand
from django_tenantqueue.operations.history import dropped_whole
from django_tenantqueue.operations.maintain import drop_history
from django_tenantqueue.text import number_of

from ...models import DAYS, RetentionRule
from ...pruning import Pruner, measure_leaf
from ...rules import SETTING

WHAT = dict(zip(DAYS, ("jobs", "arguments", "results", "errors"), strict=True))


class Prune(Subcommand):
    help = "Delete the history that neither retention rules nor HISTORY_KEEP_MONTHS keeps."
    several = "each"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="report what would be deleted, and delete nothing",
        )
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        using = jobs_database(options["database"])
        is_json = options["format"] == "json"
        pruner = Pruner(dry_run=options["dry_run"])
        told: list[dict[str, Any]] = []
        for leaf in dropped_whole(using):
            size = measure_leaf(using, leaf.name)
            if size is not None:
                told.append({"partition": leaf.name, "rows": size.about, "bytes": size.bytes})
        left: list[str] = []
        if not pruner.dry_run:
            dropped = set(drop_history(using))
            left = [found["partition"] for found in told if found["partition"] not in dropped]
            told = [found for found in told if found["partition"] in dropped]
        self._read(using, pruner, quiet=is_json)
        rules = self._rules(using, pruner) if pruner.dry_run else []
        if is_json:
            values = {"partitions": told, "busy_partitions": left}
            removed = {WHAT[name]: pruner.removed[name] for name in DAYS}
            self.print_json(values | ({"rules": rules} if pruner.dry_run else {"removed": removed}))
            return
        verb = "would be dropped" if pruner.dry_run else "dropped"
        for found in told:
            size_text = filesizeformat(found["bytes"])
            self.stdout.write(
                f"{found['partition']}: {verb}, about {number_of('job', found['rows'])}, "
                f"{size_text}"
            )
        for name in left:
            self.stdout.write(f"{name}: not dropped, since it is in use; maintenance will retry")
        for rule in rules:
            jobs = number_of("job", rule["rows"])
            what = jobs if rule["what"] == "jobs" else f"{rule['what']} of {jobs}"
            self.stdout.write(f"{rule['rule']}: {what}, {filesizeformat(rule['bytes'])}")
        if not pruner.dry_run:
            self.stdout.write(self._sum(pruner))
        elif not told and not rules:
            self.stdout.write("nothing would be deleted")

    def _read(self, using: str, pruner: Pruner, *, quiet: bool) -> None:
        """Read all months once, and print the progress every 5 seconds."""
        reported_at = time.monotonic()
        pruner.begin(using)
        while (place := pruner.place) is not None:
            done = pruner.step(using)
            if not quiet and time.monotonic() - reported_at >= 5.0:
                reported_at = time.monotonic()
                self.stdout.write(f"… {place[0]}, page {place[1]:,}: {self._sum(pruner)}")
                self.stdout.flush()
            if not pruner.dry_run:
                time.sleep(pruner.rest(done) if pruner.place else 0.0)

    def _sum(self, pruner: Pruner) -> str:
        parts = [f"{number_of('job', pruner.removed['keep_days'])} deleted"]
        parts += [f"{WHAT[n]} of {pruner.removed[n]:,}" for n in DAYS[1:] if pruner.removed[n]]
        return ", ".join(parts)

    def _rules(self, using: str, pruner: Pruner) -> list[dict[str, Any]]:
        ids = [rule_id for rule_id, _ in pruner.told]
        names = {
            rule.pk: str(rule) for rule in RetentionRule.objects.using(using).filter(pk__in=ids)
        }
        return [
            {
                "rule": "HISTORY_KEEP_MONTHS"
                if rule_id == SETTING
                else names.get(rule_id, f"#{rule_id}"),
                "what": WHAT[name],
                "rows": amount.rows,
                "bytes": amount.bytes,
            }
            for (rule_id, name), amount in sorted(pruner.told.items())
        ]
