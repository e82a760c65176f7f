"""What the audit has to go by: rows of the database, and what the run itself has noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from tests.intervals import Limits

WORKER_DIED = "django_tenantqueue.exceptions.WorkerDied"
STORED = timedelta(seconds=20)
"""So long after a run its end is stored, though its process was stopped or the server away."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a task body, as it wrote itself down."""

    job: int
    claim_seq: int
    process: str
    claimed_at: datetime | None
    """When its claim was made; None when the job was no longer its own as it began."""
    began_at: datetime
    ended_at: datetime | None
    """None when its process died before."""


@dataclass(frozen=True, slots=True)
class Life:
    """A process: alive at `alive_at`, dead at `dead_at`, and it died between the two."""

    alive_at: datetime
    dead_at: datetime | None
    parent: str | None = None
    """The identity of its supervisor; None for a supervisor."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it stands in the end, with the classes of its errors."""

    id: int
    kind: str
    queue: int
    state: str
    attempt: int
    max_attempts: int
    claim_seq: int
    queued_at: datetime | None
    finished_at: datetime | None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Everything that was found out about a run."""

    enqueued: Mapping[int, str]
    """The ids whose enqueue was committed, each with its kind."""
    rows: Sequence[JobRow]
    """All rows of all leaves; an id that stands in two is in here twice."""
    runs: Sequence[Run]
    lives: Mapping[str, Life]
    effects: Mapping[int, int]
    """How many rows the atomic jobs have written, by job."""
    limits: Mapping[int, Limits]
    """The slots of each queue, as they were changed."""
    workers_left: int = 0
    exit_codes: Sequence[int] = ()
    failures: Sequence[str] = field(default=())
    """What went wrong with the run itself."""

    @cached_property
    def runs_of(self) -> dict[int, list[Run]]:
        """The runs of each job, in the order of their begin."""
        found: dict[int, list[Run]] = {}
        for run in sorted(self.runs, key=lambda run: run.began_at):
            found.setdefault(run.job, []).append(run)
        return found

    def ended_at(self, run: Run) -> datetime:
        """Return until when a run certainly went on: its end, or its process's last sign of life.

        A process that was stopped is alive. A run in an unknown process lasted for a moment.
        """
        if run.ended_at is not None:
            return run.ended_at
        life = self.lives.get(run.process)
        return run.began_at if life is None else max(run.began_at, life.alive_at)

    def is_cut(self, run: Run) -> bool:
        """Whether the process died during the run, or before its end was stored for sure."""
        life = self.lives.get(run.process)
        if life is None or life.dead_at is None:
            return False
        return run.ended_at is None or life.dead_at - run.ended_at < STORED
