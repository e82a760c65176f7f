"""Puts the outcome of a run into lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

from .evidence import WORKER_DIED, Evidence
from .finding import Finding, clock

TROUBLE = {
    "kill": "kill -9 of a child, a supervisor or a group",
    "stop": "SIGSTOP and SIGCONT of a child",
    "server": "restarts of PostgreSQL",
    "terminate": "pg_terminate_backend of some connections",
    "slots": "slots raised or lowered",
    "snapshot": "snapshots held open",
    "restart": "supervisors started again",
    "in vain": "(attempts at trouble while the server was away)",
}


@dataclass(frozen=True, slots=True, order=True)
class Restart:
    """A job that ran again, so many seconds after the death that had cut it off."""

    seconds: float
    job: int
    died_at: datetime

    def __str__(self) -> str:
        return f"job {self.job}, cut off at {clock(self.died_at)}"


def restarts(evidence: Evidence, *, orphans: bool) -> list[Restart]:
    """Return the restarts, the quickest first.

    Of jobs whose supervisor died, too, before they ran again (orphans), or of the others.
    """
    found = []
    for runs in evidence.runs_of.values():
        for run, following in pairwise(runs):
            life = evidence.lives.get(run.process)
            if run.ended_at is not None or life is None or life.dead_at is None:
                continue
            parent = evidence.lives.get(life.parent or "")
            died = parent is not None and parent.dead_at is not None
            if orphans == (died and parent.alive_at < following.began_at):
                seconds = (following.began_at - life.alive_at).total_seconds()
                found.append(Restart(seconds, run.job, life.alive_at))
    return sorted(found)


def trouble_lines(counts: Mapping[str, int], deaths: int) -> Iterator[str]:
    yield "Trouble"
    for kind, text in TROUBLE.items():
        yield f"  {counts.get(kind, 0):7,}  {text}"
    yield f"  {deaths:7,}  processes died in all, by these or by poison"


def figure_lines(evidence: Evidence) -> Iterator[str]:
    """Yield what is worth knowing and neither right nor wrong."""
    rows = evidence.rows
    errors = Counter(error for row in rows for error in row.errors)
    attempts = sum(row.attempt for row in rows)
    yield "Figures"
    yield f"  {len(rows):7,}  jobs"
    for kind, count in sorted(Counter(row.kind for row in rows).items()):
        yield f"  {count:7,}    {kind}"
    yield f"  {sum(row.claim_seq for row in rows):7,}  claims"
    yield f"  {len(evidence.runs):7,}  runs of bodies"
    cut = sum(run.ended_at is None for run in evidence.runs)
    yield f"  {cut:7,}  runs cut off by a death"
    yield f"  {errors.pop(WORKER_DIED, 0):7,}  attempts counted for a death: jobs that were rescued"
    yield f"  {errors.total():7,}  attempts counted for an error: jobs that were retried"
    returned = sum(row.claim_seq for row in rows) - attempts
    yield f"  {returned:7,}  claims given back, no attempt counted"
    ends = [row.finished_at for row in rows if row.finished_at is not None]
    begins = [run.began_at for run in evidence.runs]
    if begins and ends:
        seconds = (max(ends) - min(begins)).total_seconds()
        yield f"  {len(ends) / seconds:7.1f}  jobs a second, from the first begin to the last end"
    for orphans, of in ((False, "a child"), (True, "a child and its supervisor")):
        if again := restarts(evidence, orphans=orphans):
            middle = median(restart.seconds for restart in again)
            yield f"  {middle:7.2f}  s from the death of {of} until a job of it runs: median"
            yield f"  {again[-1].seconds:7.2f}  s: worst ({again[-1]})"


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield each finding with its verdict, and some examples of what is wrong."""
    yield "Audit"
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        verdict = "OK" if finding.ok else "WRONG"
        figure = f"{finding.found:7,}  (expected {finding.expected})"
        yield f"  {finding.what:{width}}  {figure}  {verdict}"
        for example in finding.examples:
            yield f"      {example}"
