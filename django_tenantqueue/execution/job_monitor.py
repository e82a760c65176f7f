"""The monitor of the running job, and the results of its details."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from asgiref.sync import sync_to_async

from ..batch_sizes import BATCH, SMALL_BATCH
from ..conf import get_settings
from ..models import Job
from ..queries.lists import NEWEST
from ..queries.monitor_summary import JobMonitor, read_monitor_of_job, sum_up_monitor
from ..queries.monitors import list_ended_details
from ..states import FINAL, State

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MonitorSummary:
    """The results of the details of a monitor.

    `started_at`: when start() was called. `ended_at`: when the last detail ended; None while some
    have not ended, and when there were none.
    """

    monitor_id: int
    total: int
    succeeded: int
    failed: int
    cancelled: int
    started_at: datetime
    ended_at: datetime | None

    @property
    def duration(self) -> timedelta | None:
        """Time from the start to the end of the last detail."""
        return None if self.ended_at is None else self.ended_at - self.started_at

    def failed_ids(self) -> Iterator[int]:
        """Yield the ids of the failed details, those that failed last first.

        One thousand are read at a time, whatever their number.
        """
        for ids in self._pages(State.ERROR):
            yield from ids

    async def afailed_ids(self) -> AsyncIterator[int]:
        """See failed_ids()."""
        async for ids in _in_thread(self._pages(State.ERROR)):
            for job_id in ids:
                yield job_id

    def details(self) -> Iterator[Job]:
        """Yield the details that have ended, in the order in which they were given.

        Each has its `state`, `result` and `last_error`. One hundred are read at a time; their ids,
        8 bytes each, are read before.
        """
        for jobs in self._ended():
            yield from jobs

    async def adetails(self) -> AsyncIterator[Job]:
        """See details()."""
        async for jobs in _in_thread(self._ended()):
            for job in jobs:
                yield job

    def _ended(self) -> Iterator[Sequence[Job]]:
        """Yield the details that have ended, in order, some at a time."""
        found = array("q")
        for state in FINAL:
            for page in self._pages(state):
                found.extend(page)
        ids = array("q", sorted(found))
        for at in range(0, len(ids), SMALL_BATCH):
            part = ids[at : at + SMALL_BATCH]
            jobs = Job.objects.using(get_settings().database).find_many(part)
            yield [jobs[job_id] for job_id in part if job_id in jobs]

    def _pages(self, state: State) -> Iterator[Sequence[int]]:
        """Yield the ids of the details in a state, the last that ended first, some at a time."""
        using = get_settings().database
        before: tuple[datetime | None, int] = (None, NEWEST)
        while True:
            rows = list_ended_details(using, self.monitor_id, state, before=before, most=BATCH)
            yield [job_id for job_id, _ in rows]
            if len(rows) < BATCH:
                return
            before = rows[-1][1], rows[-1][0]


async def _in_thread(parts: Iterator[Sequence[T]]) -> AsyncIterator[Sequence[T]]:
    """Yield parts that are read from the database, each in Django's thread."""
    while (part := await sync_to_async(lambda: next(parts, None))()) is not None:
        yield part


@dataclass(frozen=True, slots=True)
class EagerSummary(MonitorSummary):
    """The same of details that ran in eager mode, which stores no jobs."""

    jobs: Sequence[Job]

    def _ended(self) -> Iterator[Sequence[Job]]:
        yield self.jobs

    def _pages(self, state: State) -> Iterator[Sequence[int]]:
        yield [job.pk for job in self.jobs if job.state == state]


def monitor_of(job_id: int) -> JobMonitor | None:
    """Return the monitor of a job that runs; None: it has none."""
    if job_id <= 0:  # eager mode stores nothing
        return None
    return read_monitor_of_job(get_settings().database, job_id)


def summary_of(monitor_id: int) -> MonitorSummary | None:
    """Return the results of the details of a monitor; None: it was deleted."""
    sums = sum_up_monitor(get_settings().database, monitor_id)
    if sums is None:
        return None
    return MonitorSummary(
        monitor_id=monitor_id,
        total=sums.added,
        succeeded=max(0, sums.added - sums.unfinished - sums.failed - sums.cancelled),
        failed=sums.failed,
        cancelled=sums.cancelled,
        started_at=sums.created_at,
        ended_at=None if sums.unfinished else sums.last_at,
    )
