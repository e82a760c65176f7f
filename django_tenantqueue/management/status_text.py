"""A FleetReport as text for a terminal, at most WIDTH characters wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import gate_keys
from ..queries.fleet import HeldJobs, RunningClaim
from ..status.display_limits import COUNTED_TO
from ..status.figures import (
    NOTHING,
    counted_text,
    duration_text,
    memory_text,
    rate_text,
    rough_text,
)
from ..status.fleet_report import FleetReport, Need, WorkerReport
from ..status.held import cause_text, place_text
from ..status.workers import DutyReport
from ..text import number_of

WIDTH = 100
_GAP = "  "
_INDENT = "    "

WORKER_HEAD = (
    "worker",
    "host",
    "pid",
    "version",
    "up",
    "state",
    "running",
    "memory",
    "claims/s",
    "jobs/s",
)
DUTY_HEAD = ("maintenance", "last run", "duration", "runs", "by", "last result", "")

Row = Sequence[str]


def report_lines(report: FleetReport) -> Iterator[str]:
    """Yield the report: workers with their jobs, maintenance, and counts of jobs."""
    yield from _workers(report)
    yield ""
    yield from _duties(report.duties)
    yield ""
    yield from _jobs(report)


def _workers(report: FleetReport) -> Iterator[str]:
    if not report.workers:
        yield "No worker runs."
    else:
        table = _table(
            [WORKER_HEAD, *map(_worker_row, report.workers)],
            right={2, 4, 6, 7, 8, 9},
            shrinks={0, 1, 3},
        )
        yield next(table)
        for worker, line in zip(report.workers, table, strict=True):
            yield line
            if worker.last_error:
                ago = rough_text(worker.last_error_seconds_ago or 0.0)
                yield _cut(f"{_INDENT}last error {ago} ago: {_one_line(worker.last_error)}", WIDTH)
            if worker.jobs:
                yield from _claims(worker.jobs, worker.claims)
    if report.strays:
        yield "Held by workers that are gone"
        yield from _claims(report.strays, len(report.strays))


def _worker_row(worker: WorkerReport) -> Row:
    return (
        _one_line(worker.name),
        _one_line(worker.host),
        str(worker.pid),
        worker.version,
        rough_text(worker.uptime_seconds),
        worker.state.value,
        str(worker.claims),
        memory_text(worker.rss_bytes),
        rate_text(worker.claims_per_second),
        rate_text(worker.jobs_per_second),
    )


def _claims(claims: Sequence[RunningClaim], held: int) -> Iterator[str]:
    rows = [
        (
            f"#{claim.id}",
            claim.state,
            rough_text(claim.age_seconds),
            f"{claim.attempt}/{claim.max_attempts}",
            f"{_one_line(claim.tenant) or NOTHING}/{_one_line(claim.queue)}",
            _one_line(claim.task),
        )
        for claim in claims
    ]
    table = _table(rows, right={0, 2}, shrinks={4, 5}, width=WIDTH - len(_INDENT))
    yield from (f"{_INDENT}{line}" for line in table)
    if held > len(claims):
        yield f"{_INDENT}and {held - len(claims):,} more"


def _duties(duties: Sequence[DutyReport]) -> Iterator[str]:
    if not duties:
        yield "No maintenance has been done yet: workers perform it"
        return
    rows = [DUTY_HEAD, *map(_duty_row, duties)]
    table = _table(rows, right={1, 2, 3}, shrinks={0, 4, 6})
    yield next(table)
    for duty, line in zip(duties, table, strict=True):
        yield line
        if duty.error:
            yield _cut(f"{_INDENT}error: {_one_line(duty.error)}", WIDTH)


def _duty_row(duty: DutyReport) -> Row:
    acted = duty.acted_seconds_ago
    return (
        duty.name,
        f"{rough_text(duty.ran_seconds_ago)} ago",
        duration_text(duty.duration_seconds),
        f"{duty.runs:,}",
        _one_line(duty.worker),
        NOTHING if acted is None else f"{rough_text(acted)} ago",
        _one_line(duty.outcome),
    )


def _jobs(report: FleetReport) -> Iterator[str]:
    counts, most = report.counts, report.counted_to
    held = counts.held
    first: dict[str, HeldJobs] = {}
    for one in report.held:
        first.setdefault(one.gate, one)
    rows = [("jobs", "", "")] + [
        (name, counted_text(number, most), _first_held(first.get(gate)))
        for name, gate, number in (
            ("ready", "", counts.ready),
            ("scheduled", "", counts.scheduled),
            ("running", "", counts.running),
            ("held by a monitor", gate_keys.MONITOR, held.monitor),
            ("held by a session", gate_keys.SESSION, held.session),
            ("held by a user limit", gate_keys.LIMIT_USER, held.limit_user),
            ("held by an exclusive key", gate_keys.EXCLUSIVE, held.exclusive),
            ("held by a task", gate_keys.TASK, held.task),
        )
        if number or not gate
    ]
    yield from _table(rows, right={1}, shrinks={2})
    yield f"(counted up to {most:,})"
    yield from _need(report.need)


def _first_held(held: HeldJobs | None) -> str:
    if held is None:
        return ""
    return _one_line(
        f"the first for {rough_text(held.wait_seconds)}: {cause_text(held)}, {place_text(held)}"
    )


def _need(need: Need) -> Iterator[str]:
    waited = need.oldest_wait_seconds
    first = "" if waited is None else f"; the first has waited {rough_text(waited)} for a worker"
    number = counted_text(need.startable, COUNTED_TO)
    jobs = "job" if need.startable == 1 else "jobs"
    yield f"{number} {jobs} could start now if workers were free{first}"
    yield (
        f"the workers run {number_of('job', need.running)} in "
        f"{number_of('thread', need.threads)} and {number_of('coroutine slot', need.async_slots)}"
    )


def _table(
    rows: Sequence[Row], *, right: set[int], shrinks: set[int], width: int = WIDTH
) -> Iterator[str]:
    """Yield rows as aligned lines; columns in `shrinks` lose their middle where it is too wide."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0:
        widest = max(shrinks, key=lambda number: widths[number], default=None)
        if widest is None or widths[widest] <= 8:
            break
        widths[widest] -= 1
        excess -= 1
    for row in rows:
        cells = [
            cell.rjust(size) if number in right else cell.ljust(size)
            for number, size in enumerate(widths)
            for cell in (_shorten(row[number], size),)
        ]
        yield _GAP.join(cells).rstrip()


def _shorten(text: str, size: int) -> str:
    """Return a text without its middle: names differ at their ends."""
    if len(text) <= size:
        return text
    tail = size // 2
    return f"{text[: size - tail - 1]}…{text[len(text) - tail :]}"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
