"""Check a batch from three sides: the seeder's notes, the reports' own records, the jobs.

This module does not read the database.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

QueueKey = tuple[str, str]
"""(airline, queue)."""
Interval = tuple[datetime, datetime]
NEVER = datetime.max.replace(tzinfo=UTC)
FINAL = ("success", "error", "cancelled")


@dataclass(frozen=True, slots=True)
class Note:
    """The seeder's note: the id of a job, and its expected end."""

    job_id: int
    airline: str
    queue: str
    state: str
    runs: int


@dataclass(frozen=True, slots=True)
class Run:
    """A report's record of one run. `finished_at`: None if it never ended."""

    job_id: int
    airline: str
    queue: str
    started_at: datetime
    finished_at: datetime | None
    succeeded: bool | None


@dataclass(frozen=True, slots=True)
class JobRow:
    """The queue's record of a job."""

    job_id: int
    airline: str
    queue: str
    state: str
    queued_at: datetime | None
    finished_at: datetime | None
    wait_seconds: float | None


@dataclass(slots=True)
class Usage:
    """The slots of one queue, and the maximum of reports at once."""

    slots: int
    most_runs: int = 0
    most_jobs: int = 0

    @property
    def most(self) -> int:
        """The larger of what the reports and what the queue recorded."""
        return max(self.most_runs, self.most_jobs)


@dataclass(slots=True)
class TenantLine:
    """A line of the table."""

    airline: str
    jobs: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    queues: dict[str, Usage] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Findings:
    """Problems as sentences, and a line of each tenant."""

    problems: list[str]
    tenants: list[TenantLine]


def most_at_once(intervals: Iterable[Interval]) -> int:
    """Return the maximum of overlapping intervals [start, end)."""
    events = sorted(
        event for start, end in intervals for event in ((start, 1), (max(start, end), -1))
    )
    running = most = 0
    for _, change in events:  # at the same moment, an end (-1) comes before a start (+1)
        running += change
        most = max(most, running)
    return most


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least `share` of all values do not exceed."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]


def audit(
    *,
    requested: int,
    notes: Sequence[Note],
    runs: Sequence[Run],
    jobs: Sequence[JobRow],
    slots: Mapping[QueueKey, int],
) -> Findings:
    """Compare what was requested with the records of the reports and of the queue."""
    problems = []
    if len({note.job_id for note in notes}) != requested:
        problems.append(
            f"the seeder requested {requested} reports but got "
            f"{len({note.job_id for note in notes})} job ids"
        )
    runs_of: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        runs_of[run.job_id].append(run)
    job_of = {job.job_id: job for job in jobs}
    for job_id, rows in Counter(job.job_id for job in jobs).items():
        if rows > 1:
            problems.append(f"job {job_id} is in the job table {rows} times")
    for note in notes:
        problems += _check_job(note, job_of.get(note.job_id), runs_of[note.job_id])
    usage = _usage(runs, jobs, slots)
    for (airline, queue), used in sorted(usage.items()):
        for most, source in (
            (used.most_runs, "by the reports' own records"),
            (used.most_jobs, "by the job table"),
        ):
            if most > used.slots:
                problems.append(
                    f"{airline}/{queue} has {used.slots} slots, but {most} reports ran at once "
                    f"{source}"
                )
    return Findings(problems, _lines(notes, job_of, usage))


def _check_job(note: Note, job: JobRow | None, runs: Sequence[Run]) -> list[str]:
    name = f"job {note.job_id} of {note.airline}/{note.queue}"
    if job is None:
        return [f"{name} is lost: it is not in the job table"]
    problems = []
    if job.state not in FINAL:
        problems.append(f"{name} was not finished: it is {job.state}")
    elif job.state != note.state:
        problems.append(f"{name} ended as {job.state}, not as {note.state}")
    if len(runs) != note.runs:
        problems.append(f"{name} ran {len(runs)} times by its own records, not {note.runs}")
    for place in ((job.airline, job.queue), *((run.airline, run.queue) for run in runs)):
        if place != (note.airline, note.queue):
            problems.append(f"{name} ran in {place[0]}/{place[1]}")
    if any(run.finished_at is None for run in runs):
        problems.append(f"{name} has a run that never ended")
    successes = sum(run.succeeded is True for run in runs)
    if successes != (job.state == "success"):
        problems.append(f"{name} is {job.state}, but {successes} of its runs succeeded")
    return problems


def _usage(
    runs: Iterable[Run], jobs: Iterable[JobRow], slots: Mapping[QueueKey, int]
) -> dict[QueueKey, Usage]:
    by_runs: dict[QueueKey, list[Interval]] = defaultdict(list)
    by_jobs: dict[QueueKey, list[Interval]] = defaultdict(list)
    for run in runs:
        by_runs[run.airline, run.queue].append((run.started_at, run.finished_at or NEVER))
    for job in jobs:
        if job.queued_at is not None:
            by_jobs[job.airline, job.queue].append((job.queued_at, job.finished_at or NEVER))
    return {
        key: Usage(
            slots=slots.get(key, 0),
            most_runs=most_at_once(by_runs[key]),
            most_jobs=most_at_once(by_jobs[key]),
        )
        for key in {*by_runs, *by_jobs}
    }


def _lines(
    notes: Sequence[Note], job_of: Mapping[int, JobRow], usage: Mapping[QueueKey, Usage]
) -> list[TenantLine]:
    tenants: dict[str, TenantLine] = {}
    for note in notes:
        line = tenants.setdefault(note.airline, TenantLine(note.airline))
        line.jobs += 1
        line.retried += note.runs > 1
        job = job_of.get(note.job_id)
        if job is None:
            continue
        line.succeeded += job.state == "success"
        line.failed += job.state == "error"
        if job.wait_seconds is not None:
            line.waits.append(job.wait_seconds)
    for (airline, queue), used in usage.items():
        tenants.setdefault(airline, TenantLine(airline)).queues[queue] = used
    return sorted(tenants.values(), key=lambda line: (-line.jobs, line.airline))
