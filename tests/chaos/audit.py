"""What must hold after the trouble. Each function judges one thing, from the evidence alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from .evidence import WORKER_DIED, Evidence
from .finding import MOST_EXAMPLES, Finding, clock, describe, none_of
from .slots import over_slots, over_slots_by_runs

FINAL = frozenset({"success", "error", "cancelled"})
DATABASE_ERRORS = ("django.db.utils.", "psycopg.")
POISON = "poison"


def audit(evidence: Evidence) -> list[Finding]:
    return [judge(evidence) for judge in JUDGES]


# what became of the jobs


def lost(evidence: Evidence) -> Finding:
    """Every enqueued job has a row."""
    there = {row.id for row in evidence.rows}
    return none_of("jobs lost", (f"job {job}" for job in evidence.enqueued if job not in there))


def uninvited(evidence: Evidence) -> Finding:
    """Every row was enqueued: an enqueue that was cut has left nothing."""
    strangers = (f"job {row.id}" for row in evidence.rows if row.id not in evidence.enqueued)
    return none_of("jobs that nobody enqueued", strangers)


def doubled(evidence: Evidence) -> Finding:
    """No id stands in two leaves."""
    counts = Counter(row.id for row in evidence.rows)
    return none_of("jobs in two leaves", (f"job {job}" for job, n in counts.items() if n > 1))


def unfinished(evidence: Evidence) -> Finding:
    """Every job has ended."""
    wrong = (f"job {row.id} is {row.state}" for row in evidence.rows if row.state not in FINAL)
    return none_of("jobs not ended", wrong)


def failed(evidence: Evidence) -> Finding:
    """Only poison ends in any way but success."""
    wrong = (
        f"job {row.id} ({row.kind}) is {row.state}: {', '.join(row.errors)}"
        for row in evidence.rows
        if row.kind != POISON and row.state in FINAL and row.state != "success"
    )
    return none_of("jobs in error that are no poison", wrong)


def poisoned(evidence: Evidence) -> Finding:
    """Each poison job has ended in error, all its attempts spent on processes that died."""
    planted = [row for row in evidence.rows if row.kind == POISON]
    wrong = [
        f"job {row.id} is {row.state}, attempt {row.attempt}: {', '.join(row.errors)}"
        for row in planted
        if row.state != "error"
        or row.attempt != row.max_attempts
        or row.errors != (WORKER_DIED,) * row.attempt
    ]
    expected = sum(kind == POISON for kind in evidence.enqueued.values())
    right = len(planted) - len(wrong)
    return Finding(
        "poison jobs in error, each death noted",
        right,
        str(expected),
        right == expected,
        tuple(wrong[:MOST_EXAMPLES]),
    )


# who ran them


def overlapping(evidence: Evidence) -> Finding:
    """No job was in two hands at once."""
    wrong = []
    for job, runs in evidence.runs_of.items():
        last = runs[0]
        for run in runs[1:]:
            if run.began_at < evidence.ended_at(last):
                wrong.append(
                    f"job {job}: {describe(run)} began before {describe(last)} was over"
                    f" at {clock(evidence.ended_at(last))}"
                )
            last = max(last, run, key=evidence.ended_at)
    return none_of("runs of one job that overlap", wrong)


def repeated(evidence: Evidence) -> Finding:
    """No claim was begun twice."""
    counts = Counter((run.job, run.claim_seq) for run in evidence.runs)
    wrong = (f"job {job}, claim {seq}: {n} runs" for (job, seq), n in counts.items() if n > 1)
    return none_of("claims begun twice", wrong)


def late(evidence: Evidence) -> Finding:
    """No run began whose claim was lost before.

    A process that died as it wrote its first row does not count: the server may have carried the
    statement out when the job was rescued already.
    """
    wrong = (
        f"job {run.job}: {describe(run)}"
        for run in evidence.runs
        if run.claimed_at is None and not (run.ended_at is None and evidence.is_cut(run))
    )
    return none_of("runs begun after their claim was lost", wrong)


def unwatched(evidence: Evidence) -> Finding:
    """Each run was in a process that the run knew of: else nothing is known about its end."""
    strange = {run.process for run in evidence.runs} - set(evidence.lives)
    return none_of("processes with runs that nobody watched", sorted(strange))


def unended(evidence: Evidence) -> Finding:
    """Each run without an end was cut off by the death of its process."""
    wrong = (
        f"job {run.job}: {describe(run)}"
        for run in evidence.runs
        if run.ended_at is None and not evidence.is_cut(run)
    )
    return none_of("runs without an end in a process that lived", wrong)


def unrun(evidence: Evidence) -> Finding:
    """Each success was earned by a run of the last claim, from its begin to its end."""
    complete = {(run.job, run.claim_seq) for run in evidence.runs if run.ended_at is not None}
    wrong = (
        f"job {row.id}, claim {row.claim_seq}"
        for row in evidence.rows
        if row.state == "success" and (row.id, row.claim_seq) not in complete
    )
    return none_of("successes without a complete run", wrong)


# effects and attempts


def miswritten(evidence: Evidence) -> Finding:
    """Each atomic job that succeeded has written one row, and nobody else any."""
    wrong = []
    for row in evidence.rows:
        due = int(row.kind == "atomic" and row.state == "success")
        if evidence.effects.get(row.id, 0) != due:
            wrong.append(f"job {row.id} ({row.kind}): {evidence.effects.get(row.id, 0)} rows")
    return none_of("atomic jobs without exactly one row", wrong)


def miscounted(evidence: Evidence) -> Finding:
    """Each attempt but a successful last one has left its error."""
    wrong = (
        f"job {row.id} ({row.state}): attempt {row.attempt}, {len(row.errors)} errors"
        for row in evidence.rows
        if row.attempt != len(row.errors) + (row.state == "success")
    )
    return none_of("jobs whose attempts and errors differ", wrong)


def overrun(evidence: Evidence) -> Finding:
    """No job has more runs than claims; runs that counted no attempt were cut by a death."""
    wrong = []
    for row in evidence.rows:
        runs = evidence.runs_of.get(row.id, [])
        cut = sum(evidence.is_cut(run) for run in runs)
        if len(runs) > row.claim_seq or len(runs) > row.attempt + cut:
            wrong.append(
                f"job {row.id}: {len(runs)} runs, {cut} of them cut,"
                f" {row.attempt} attempts, {row.claim_seq} claims"
            )
    return none_of("jobs with more runs than were counted", wrong)


def overcharged(evidence: Evidence) -> Finding:
    """Each attempt that a death has cost had a claim in a process that died.

    It did when one of the job's runs was there, or when a claim was never seen to begin.
    """
    wrong = []
    for row in evidence.rows:
        runs = evidence.runs_of.get(row.id, [])
        charged = row.errors.count(WORKER_DIED)
        possible = sum(evidence.is_cut(run) for run in runs) + row.claim_seq - len(runs)
        if charged > possible:
            wrong.append(f"job {row.id}: {charged} attempts lost to at most {possible} deaths")
    return none_of("attempts charged without a death", wrong)


def unexplained(evidence: Evidence) -> Finding:
    """Only deaths cost attempts, and only atomic jobs notice that the server was away."""
    wrong = []
    for row in evidence.rows:
        for error in row.errors:
            lost_connection = row.kind == "atomic" and error.startswith(DATABASE_ERRORS)
            if error != WORKER_DIED and not lost_connection:
                wrong.append(f"job {row.id} ({row.kind}): {error}")
    return none_of("errors without a reason", wrong)


# the fleet


def remaining(evidence: Evidence) -> Finding:
    """No worker is on the list when all have ended."""
    left = evidence.workers_left
    return Finding("workers left on the list", left, "0", left == 0)


def unclean(evidence: Evidence) -> Finding:
    """The supervisors ended as they were told to."""
    wrong = (f"exit code {code}" for code in evidence.exit_codes if code != 0)
    return none_of("supervisors that did not end cleanly", wrong)


def broken(evidence: Evidence) -> Finding:
    """The run itself has worked."""
    return none_of("failures of this program", evidence.failures)


JUDGES: tuple[Callable[[Evidence], Finding], ...] = (
    lost,
    uninvited,
    doubled,
    unfinished,
    failed,
    poisoned,
    overlapping,
    repeated,
    late,
    unwatched,
    unended,
    unrun,
    over_slots,
    over_slots_by_runs,
    miswritten,
    miscounted,
    overrun,
    overcharged,
    unexplained,
    remaining,
    unclean,
    broken,
)
