"""The monitor of the job that is being run, and what has become of its details."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from asgiref.sync import sync_to_async

from ..batches import BATCH, SMALL_BATCH
from ..conf import get_settings
from ..models import Job
from ..queries.lists import NEWEST
from ..queries.monitor_summary import JobMonitor, read_monitor_of_job, sum_up_monitor
from ..queries.monitors import list_ended_details
from ..states import FINAL, State

_Place = tuple[datetime | None, int]


@dataclass(frozen=True, slots=True)
class MonitorSummary:
    """What has become of the details of a monitor.

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
        """From the start to the end of the last detail."""
        return None if self.ended_at is None else self.ended_at - self.started_at

    def failed_ids(self) -> Iterator[int]:
        """Yield the ids of the failed details, those that failed last first.

        One thousand are read at a time, whatever their number.
        """
        place: _Place | None = (None, NEWEST)
        while place is not None:
            ids, place = self._page(State.ERROR, place)
            yield from ids

    async def afailed_ids(self) -> AsyncIterator[int]:
        """See failed_ids()."""
        place: _Place | None = (None, NEWEST)
        while place is not None:
            ids, place = await sync_to_async(self._page)(State.ERROR, place)
            for job_id in ids:
                yield job_id

    def details(self) -> Iterator[Job]:
        """Yield the details that have ended, in the order in which they were given.

        Each has its `state`, `result` and `last_error`. One hundred are read at a time; their ids,
        8 bytes each, are read before.
        """
        ids = self._ended_ids()
        for at in range(0, len(ids), SMALL_BATCH):
            yield from _read_jobs(ids[at : at + SMALL_BATCH])

    async def adetails(self) -> AsyncIterator[Job]:
        """See details()."""
        ids = await sync_to_async(self._ended_ids)()
        for at in range(0, len(ids), SMALL_BATCH):
            for job in await sync_to_async(_read_jobs)(ids[at : at + SMALL_BATCH]):
                yield job

    def _ended_ids(self) -> Sequence[int]:
        """Return the ids of the details that have ended, in order."""
        ids = array("q")
        for state in sorted(FINAL):
            place: _Place | None = (None, NEWEST)
            while place is not None:
                found, place = self._page(state, place)
                ids.extend(found)
        return array("q", sorted(ids))

    def _page(self, state: State, before: _Place) -> tuple[list[int], _Place | None]:
        """Return the next details in a state, and where to go on; None: these are the last."""
        using = get_settings().database
        rows = list_ended_details(using, self.monitor_id, state, before=before, most=BATCH)
        place = (rows[-1][1], rows[-1][0]) if len(rows) == BATCH else None
        return [job_id for job_id, _ in rows], place


def _read_jobs(ids: Sequence[int]) -> list[Job]:
    found = Job.objects.using(get_settings().database).find_many(ids)
    return [found[job_id] for job_id in ids if job_id in found]


@dataclass(frozen=True, slots=True)
class EagerSummary(MonitorSummary):
    """The same of details that ran in eager mode, which stores no jobs."""

    jobs: Sequence[Job]

    def details(self) -> Iterator[Job]:
        """Yield the details, in their order."""
        return iter(self.jobs)

    async def adetails(self) -> AsyncIterator[Job]:
        """See details()."""
        for job in self.jobs:
            yield job

    def _page(self, state: State, before: _Place) -> tuple[list[int], _Place | None]:
        return [job.pk for job in self.jobs if job.state == state], None


def monitor_of(job_id: int) -> JobMonitor | None:
    """Return the monitor of a job that runs; None: it has none."""
    if job_id <= 0:  # eager mode stores nothing
        return None
    return read_monitor_of_job(get_settings().database, job_id)


def summary_of(monitor_id: int) -> MonitorSummary | None:
    """Return what has become of the details of a monitor; None: it was deleted."""
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
