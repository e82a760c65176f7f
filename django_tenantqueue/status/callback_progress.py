"""The progress of a monitor, shown as that of its callback, which represents all details."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ..databases import database_of_row
from ..models import ConcurrentJobMonitor, Job
from ..queries.monitors import count_details


def callback_of(using: str, monitor: ConcurrentJobMonitor) -> Job | None:
    """Return the callback of a monitor with its progress; None: it is not in the history any more.

    A monitor without `on_end` has a callback that does nothing.
    """
    job = Job.objects.using(using).find(monitor.anchor_id)
    if job is not None:
        show_details([job])
    return job


def show_details(jobs: Iterable[Job]) -> None:
    """Give callbacks that have not ended the progress of the details; nothing is stored.

    In each database, one statement finds the callbacks among jobs of monitors, and one counts the
    details of all. A callback that reports progress of its own keeps it.
    """
    waiting: defaultdict[str, dict[int, Job]] = defaultdict(dict)
    for job in jobs:
        if job.monitor_id is not None and not job.final and job.progress_done is None:
            waiting[database_of_row(job)][job.pk] = job
    for using, callbacks in waiting.items():
        _show_details(using, callbacks)


def _show_details(using: str, waiting: Mapping[int, Job]) -> None:
    monitors = ConcurrentJobMonitor.objects.using(using).filter(anchor_id__in=list(waiting))
    anchors = dict(monitors.values_list("pk", "anchor_id"))
    for pk, counts in (count_details(using, sorted(anchors)) if anchors else {}).items():
        if counts.added:
            job, ended = waiting[anchors[pk]], max(0, counts.added - counts.left)
            job.progress_done, job.progress_total = float(ended), float(counts.added)
            job.progress_message = f"{ended:,} / {counts.added:,}"
