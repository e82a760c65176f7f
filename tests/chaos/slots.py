"""Whether a queue ever had more jobs than slots.

Lowering the slots stops nothing that runs: only the moments of claims are judged, each by the limit
that was in force then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from tests.intervals import breaches

from .evidence import Evidence, JobRow, Run
from .finding import Finding, clock, none_of

Held = dict[int, list[tuple[datetime, datetime]]]
"""For each queue, from when to when its slots were taken."""


def over_slots(evidence: Evidence) -> Finding:
    """No claim was made in a full queue, by the job rows: the last claim of each job."""
    held: Held = {}
    for row in evidence.rows:
        if row.queued_at is not None and row.finished_at is not None:
            held.setdefault(row.queue, []).append((row.queued_at, row.finished_at))
    return none_of("claims over the slots, by job rows", too_many(evidence, held))


def over_slots_by_runs(evidence: Evidence) -> Finding:
    """The same with every claim that a body has seen, also those that ended in a death."""
    rows = {row.id: row for row in evidence.rows}
    held: Held = {}
    for run in evidence.runs:
        row = rows.get(run.job)
        if row is not None and run.claimed_at is not None:
            end = max(run.claimed_at, end_of_claim(evidence, run, row))
            held.setdefault(row.queue, []).append((run.claimed_at, end))
    return none_of("claims over the slots, by all runs", too_many(evidence, held))


def end_of_claim(evidence: Evidence, run: Run, row: JobRow) -> datetime:
    """Return until when a claim certainly held its slot."""
    if run.claim_seq == row.claim_seq and row.finished_at is not None:
        return row.finished_at
    return evidence.ended_at(run)


def too_many(evidence: Evidence, held: Held) -> Iterable[str]:
    """Yield the claims that were made at or over the limit that was in force then."""
    for queue, intervals in sorted(held.items()):
        for breach in breaches(intervals, evidence.limits[queue]):
            yield (
                f"queue {queue} at {clock(breach.at)}: {breach.count} with {breach.allowed} slots"
            )
