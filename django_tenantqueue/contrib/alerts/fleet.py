"""Reads for the rules of one check. Each is limited, and shared by the rules."""

from __future__ import annotations

from datetime import datetime
from functools import cache, cached_property

from ...queries.fleet import HeldJobs, list_held
from ...queries.tasks import TaskWait, list_ready_tasks
from ...status.conditions import Look
from ...status.display_limits import COUNTED_TO, VISITED
from .waiting import COUNTED_JOBS


class Fleet(Look):
    """Reads for the rules of one check, each made at most once."""

    def __init__(self, using: str, now: datetime) -> None:
        super().__init__(using, now=now)
        self.ready_tasks = cache(self._ready_tasks)
        self.seen_by = cache(self._seen_by)

    def _seen_by(self, tenant: str | None) -> Look:
        """Return a look at one tenant; None: at all."""
        return self if tenant is None else Look(self.using, [tenant], now=self._now)

    def _ready_tasks(self, tenant: str | None, queue: str) -> list[TaskWait]:
        """Return the ready jobs by task in the queues of a tenant (None: all) or a name ("": all).

        COUNTED_JOBS are read at most. Where there are more, they are those of many queues.
        """
        ids = [q.id for q in self.seen_by(tenant).busy.queues if q.name == (queue or q.name)]
        found: dict[int, list[TaskWait]] = {}
        left, read = COUNTED_JOBS, 0
        # those with fewer jobs than their share leave the rest to the others
        while ids and (most := left // len(ids)) > read:
            found |= {queue_id: [] for queue_id in ids}
            for row in list_ready_tasks(self.using, ids, most=most):
                found[row.queue_id].append(row)
            counts = {queue_id: sum(row.jobs for row in found[queue_id]) for queue_id in ids}
            left -= sum(counts.values())
            read = most
            ids = [queue_id for queue_id in ids if counts[queue_id] >= most]
        return [row for rows in found.values() for row in rows]

    @cached_property
    def held(self) -> list[HeldJobs]:
        """Return what gates hold, by queues: of each gate those of the longest waits, uncounted."""
        return list_held(self.using, listed=COUNTED_TO, visits=VISITED, most=1)
