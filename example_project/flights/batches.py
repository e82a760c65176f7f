"""Read a batch of reports, check it, and show it as a table."""

from collections.abc import Iterator

from django_tenantqueue.models import Job, TenantQueue

from . import plans
from .audit import FINAL, Findings, JobRow, Note, Run, TenantLine, audit, percentile
from .models import Airline, Batch, ReportRun

SHOWN_PROBLEMS = 25
IDS_AT_ONCE = 1000


def check(batch: Batch, requested: int | None = None) -> Findings:
    """Audit a batch against the slots that its queues have now.

    `requested`: the seeder's own count; default: the stored one.
    """
    notes = [
        Note(note.job_id, note.airline, note.queue, note.state, note.runs)
        for note in batch.jobs.all()
    ]
    ids = [note.job_id for note in notes]
    return audit(
        requested=batch.job_count if requested is None else requested,
        notes=notes,
        runs=list(_runs(ids)),
        jobs=list(_jobs(ids)),
        slots={
            (queue.tenant, queue.name): queue.num_slots
            for queue in TenantQueue.objects.filter(tenant__in={note.airline for note in notes})
        },
    )


def _chunks(ids: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(ids), IDS_AT_ONCE):
        yield ids[first : first + IDS_AT_ONCE]


def _runs(ids: list[int]) -> Iterator[Run]:
    for chunk in _chunks(ids):
        for run in ReportRun.objects.filter(job_id__in=chunk):
            yield Run(
                run.job_id,
                run.airline,
                run.queue,
                run.started_at,
                run.finished_at,
                run.succeeded,
            )


def _jobs(ids: list[int]) -> Iterator[JobRow]:
    for chunk in _chunks(ids):
        for job in Job.objects.filter(pk__in=chunk).select_related("queue"):
            waited = job.wait_duration
            yield JobRow(
                job.pk,
                job.queue.tenant,
                job.queue.name,
                job.state,
                job.queued_at,
                job.finished_at,
                None if waited is None else waited.total_seconds(),
            )


def count_unfinished(ids: list[int]) -> int:
    """Return how many of these jobs are unfinished or missing."""
    ended = sum(
        Job.objects.finished().filter(pk__in=chunk, state__in=FINAL).count()
        for chunk in _chunks(ids)
    )
    return len(ids) - ended


def as_text(findings: Findings) -> str:
    """Return the findings as a table, with the problems below it."""
    names = {airline.code: airline for airline in Airline.objects.all()}
    heading = (
        f"{'':66}{'reports':>10}{'heavy':>14}{'wait in s':>16}\n"
        f"{'tenant':30}{'plan':12}{'jobs':>6}{'failed':>8}{'retried':>9}"
        f"{'slots  most':>13}{'slots  most':>14}{'p50':>9}{'p95':>7}"
    )
    lines = [heading, "-" * len(heading.splitlines()[1])]
    for line in findings.tenants:
        airline = names.get(line.airline)
        name = f"{line.airline} {airline.name if airline else ''}"
        lines.append(
            f"{name[:29]:30}{airline.get_plan_display() if airline else '':12}{line.jobs:>6}"
            f"{line.failed:>8}{line.retried:>9}{_use(line, plans.REPORTS)}"
            f" {_use(line, plans.HEAVY)}{_seconds(line, 0.5):>9}{_seconds(line, 0.95):>7}"
        )
    total = findings.tenants
    failed, retried = sum(line.failed for line in total), sum(line.retried for line in total)
    lines.append(lines[1])
    lines.append(f"{'all':42}{sum(line.jobs for line in total):>6}{failed:>8}{retried:>9}")
    if findings.problems:
        lines += ["", f"{len(findings.problems)} problems:"]
        lines += [f"  {problem}" for problem in findings.problems[:SHOWN_PROBLEMS]]
        if len(findings.problems) > SHOWN_PROBLEMS:
            lines.append(f"  and {len(findings.problems) - SHOWN_PROBLEMS} more")
    return "\n".join(lines)


def _use(line: TenantLine, queue: str) -> str:
    used = line.queues.get(queue)
    if used is None:
        return f"{'–':>7}{'–':>6}"
    return f"{used.slots:>7}{used.most:>6}"


def _seconds(line: TenantLine, share: float) -> str:
    value = percentile(line.waits, share)
    return "–" if value is None else f"{value:.1f}"
