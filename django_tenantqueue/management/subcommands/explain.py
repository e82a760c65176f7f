"""manage.py tenantqueue explain"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from ...models import ConcurrentJobMonitor, Job
from ...states import State
from ...status.explanation import Cause, explain, explain_monitor
from ...status.explanation.names import moment_text
from ...status.monitor_progress import progress_of
from ..database import jobs_database
from ..numbers import row_number
from ..subcommand import Subcommand


@dataclass(frozen=True, slots=True)
class Answer:
    """What the command prints. `counts`: how many details each cause keeps; 0 is not printed."""

    title: str
    sentence: str
    causes: Sequence[Cause]
    counts: Sequence[int]
    values: dict[str, Any]


class Explain(Subcommand):
    """Prints why one job does not run, or what limits a monitor."""

    help = "Explain why a job does not run, or what limits a monitor, with remedies."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("id", type=row_number, metavar="ID", help="the number of the job: 1753 or #1753")
        add("--monitor", action="store_true", help="ID is the number of a monitor")
        self.add_format(parser)
        self.add_database(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        using = jobs_database(options["database"])
        read = _read_monitor if options["monitor"] else _read_job
        answer = read(using, options["id"])
        if answer is None:
            what, why = ("job", ": it was never committed, or its month of the history was dropped")
            if options["monitor"]:
                what, why = "monitor", ""
            raise CommandError(
                f"{what} #{options['id']} does not exist in the database {using!r}{why}"
            )
        if options["format"] == "json":
            self.print_json(answer.values)
            return
        for line in _lines(answer):
            self.stdout.write(line)


def _read_job(using: str, job_id: int) -> Answer | None:
    job = Job.objects.using(using).find(job_id)
    if job is None:
        return None
    found = explain(using, job)
    title = f"#{found.job_id} {found.task} ({State(found.state).label})"
    return Answer(title, found.sentence, found.causes, [0] * len(found.causes), asdict(found))


def _read_monitor(using: str, monitor_id: int) -> Answer | None:
    monitor = ConcurrentJobMonitor.objects.using(using).filter(pk=monitor_id).first()
    if monitor is None:
        return None
    now = progress_of([monitor])[monitor.pk]
    found = explain_monitor(using, monitor, now)
    values = {
        "monitor_id": monitor.pk,
        "name": monitor.name,
        "status": now.status,
        "sentence": found.sentence,
        "causes": [{**asdict(bound.cause), "details": bound.details} for bound in found.bounds],
        "read_at": timezone.now(),
    }
    causes = [bound.cause for bound in found.bounds]
    counts = [bound.details for bound in found.bounds]
    return Answer(f"{monitor} ({now.status})", found.sentence, causes, counts, values)


def _lines(answer: Answer) -> Iterator[str]:
    yield answer.title
    yield answer.sentence
    for cause, count in zip(answer.causes, answer.counts, strict=True):
        details = ngettext("%s detail:", "%s details:", count) % f"{count:,}" if count else ""
        yield " ".join(filter(None, ("-", details, cause.sentence + _where(cause))))
        if cause.done_by is not None:
            yield "    " + gettext("Last set by %(name)s, at %(at)s.") % {
                "name": cause.done_by.text,
                "at": moment_text(cause.done_by.at),
            }
        if cause.remedy:
            yield f"    → {cause.remedy}"


def _where(cause: Cause) -> str:
    if cause.target is None or cause.target.kind == "job":
        return ""
    return f" ({cause.target.kind}: {cause.target.label})"
