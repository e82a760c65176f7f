"""The entries of the audit log about jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..models import Change, Job, TenantQueue
from .changes import MOST_IDS, Edit, entry_of_jobs, one_or_list, record_jobs


class CancelEntry:
    """The entry of one cancellation, which takes some steps.

    The jobs are read before: they are in another partition afterwards.
    """

    def __init__(self, using: str, ids: Collection[int]) -> None:
        jobs = Job.objects.using(using).unfinished()
        chosen = jobs.filter(pk__in=sorted(ids)[:MOST_IDS]).order_by()
        self._states = dict(chosen.values_list("pk", "state"))
        self._entry = entry_of_jobs(using, Change.Action.CANCEL, jobs, ids)

    def add(self, name: str, ids: Collection[int]) -> None:
        """Add jobs that have ended ("cancelled"), or whose workers were asked ("asked_to_stop")."""
        states = [self._states[job_id] for job_id in ids if job_id in self._states]
        before: dict[str, Any] = {"state": one_or_list(states)} if states else {}
        self._entry.add(ids, before=before, after={name: len(ids)})


def record_move(using: str, former: Mapping[int, int], queue_id: int) -> None:
    """Write the entry of moved jobs, by the ids of their former queues."""
    queues = TenantQueue.objects.using(using).in_bulk({queue_id, *former.values()})
    names = {pk: str(queue) for pk, queue in queues.items()}
    changes = {
        job_id: Edit({"queue": names.get(was, f"#{was}")}, {"queue": names.get(queue_id)})
        for job_id, was in former.items()
        if was != queue_id
    }
    record_jobs(using, Change.Action.MOVE, changes)
