"""The progress of monitors, and their estimated ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt

from django.utils import timezone
from django.utils.translation import gettext, ngettext

from ..conf import get_settings
from ..databases import database_of_row
from ..models import ConcurrentJobMonitor, Job
from ..queries.monitors import (
    DetailCounts,
    count_details,
    find_monitors_ahead,
    list_detail_ends,
)
from ..states import State


@dataclass(frozen=True, slots=True)
class Pace:
    """Details that end in a second: what is likely, and a range that holds nine times in ten."""

    per_second: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a monitor stands. All counts are of one moment.

    `status`: one of `waiting` (for its session), `running`, `paused`, `stopped` (too many details
    have failed), `open` (nothing is left, more may come), `ending` (its callback runs), `ended`,
    `cancelling`, `cancelled`. `reason` says why in words where that is not plain.
    """

    status: str
    reason: str
    total: int
    done: int
    failed: int
    cancelled: int
    running: int
    ready: int
    retrying: int
    in_line: int
    aside: int = 0
    """Details set aside, since their task is paused or as many of its jobs run as may."""
    pace: Pace | None = None
    ends_at: datetime | None = None
    ends_at_earliest: datetime | None = None
    ends_at_latest: datetime | None = None

    @property
    def left(self) -> int:
        """Details that have not ended."""
        return self.running + self.ready + self.retrying + self.in_line + self.aside

    @property
    def waiting(self) -> int:
        """Details that have not ended and have no slot."""
        return self.left - self.running

    @property
    def percent(self) -> float | None:
        """Share of the details that have ended, 0 to 100; None without details."""
        return 100.0 * (self.total - self.left) / self.total if self.total else None


def progress_of(
    monitors: Iterable[ConcurrentJobMonitor], now: datetime | None = None
) -> dict[int, Progress]:
    """Return the progress of monitors by id, with at most four statements for all of them.

    The monitors are of one database.

    What operators have set is read with the counts: the objects given may be older.

    The end is estimated by the pace of the newest details, and said with a range; it is None while
    nothing is fed or too few have ended. A change of `parallel` shows as the new pace comes in.
    """
    monitors = list(monitors)
    using = database_of_row(monitors[0]) if monitors else get_settings().database
    ids = [monitor.pk for monitor in monitors]
    counts = count_details(using, ids) if ids else {}
    statuses = {pk: _status(counts[pk]) for pk in counts}
    statuses |= _waiting_behind_others(using, statuses, counts)
    statuses |= _bounded_by_queues(using, monitors, statuses, counts)
    fed = [pk for pk, (status, _) in statuses.items() if status == "running" and counts[pk].left]
    ends = {}
    if fed:
        ends = list_detail_ends(using, fed, most=300, since_seconds=3600.0)
    moment = now or timezone.now()
    return {
        pk: _progress(counts[pk], *statuses[pk], estimate_pace(ends.get(pk, ()), moment), moment)
        for pk in counts
    }


def _progress(
    counts: DetailCounts, status: str, reason: str, pace: Pace | None, now: datetime
) -> Progress:
    return Progress(
        status=status,
        reason=reason,
        total=counts.added,
        done=max(0, counts.added - counts.left - counts.failed - counts.cancelled),
        failed=counts.failed,
        cancelled=counts.cancelled,
        running=counts.running,
        ready=counts.ready,
        retrying=counts.retrying,
        in_line=counts.in_line,
        aside=counts.aside,
        pace=pace,
        ends_at=None if pace is None else _after(now, counts.left, pace.per_second),
        ends_at_earliest=None if pace is None else _after(now, counts.left, pace.high),
        ends_at_latest=None if pace is None else _after(now, counts.left, pace.low),
    )


def _status(counts: DetailCounts) -> tuple[str, str]:
    left, most = counts.left, counts.stop_after_failures
    if counts.is_cancelled:
        return ("cancelling" if left or counts.anchor_state else "cancelled"), ""
    if counts.anchor_line == "session":
        return "waiting", gettext("it waits for its turn in its session")
    if left and most is not None and counts.failed >= most:
        told = ngettext(
            "%(failed)d detail has failed, and it stops after %(most)d: "
            "retry it, or raise that number",
            "%(failed)d details have failed, and it stops after %(most)d: "
            "retry them, or raise that number",
            counts.failed,
        )
        return "stopped", told % {"failed": counts.failed, "most": most}
    if left and (counts.paused or counts.parallel == 0):
        return "paused", "" if counts.paused else gettext("parallel is 0")
    if counts.aside:
        told = ngettext(
            "%(count)s detail waits for a task that is paused or has no free slot",
            "%(count)s details wait for a task that is paused or has no free slot",
            counts.aside,
        )
        return "running", told % {"count": f"{counts.aside:,}"}
    if left:
        return "running", ""
    if counts.anchor_line == "details":
        if counts.keep_open:
            return "open", gettext("it waits for more details, or to be closed")
        return "running", gettext("its end is about to be detected")
    if counts.anchor_state is not None:
        if counts.anchor_state in (State.QUEUED, State.RUNNING):
            return "ending", gettext("its callback runs")
        return "ending", gettext("its callback has not run yet")
    return "ended", ""


def _waiting_behind_others(
    using: str, statuses: Mapping[int, tuple[str, str]], counts: Mapping[int, DetailCounts]
) -> dict[int, tuple[str, str]]:
    idle = [
        pk
        for pk, status in statuses.items()
        if status == ("running", "") and counts[pk].ready and not counts[pk].running
    ]
    ahead = find_monitors_ahead(using, idle) if idle else {}
    told = gettext("its details wait behind those of monitor #%d, of the same queue and priority")
    return {pk: ("running", told % other) for pk, other in ahead.items()}


def _bounded_by_queues(
    using: str,
    monitors: Iterable[ConcurrentJobMonitor],
    statuses: Mapping[int, tuple[str, str]],
    counts: Mapping[int, DetailCounts],
) -> dict[int, tuple[str, str]]:
    anchors = {
        monitor.anchor_id: monitor.pk
        for monitor in monitors
        if statuses.get(monitor.pk) == ("running", "") and counts[monitor.pk].ready
    }
    if not anchors:
        return {}
    jobs = Job.objects.using(using).unfinished().filter(pk__in=list(anchors))
    found = {}
    for job in jobs.select_related("queue"):
        pk, queue = anchors[job.pk], job.queue
        if queue.paused:
            found[pk] = ("running", gettext("its queue (%s) is paused") % queue)
        elif queue.num_slots is not None and queue.num_slots < counts[pk].parallel:
            told = gettext(
                "its queue (%(queue)s) has slots for %(slots)s at once, "
                "of %(parallel)s that may be in flight"
            )
            slots, parallel = f"{queue.num_slots:,}", f"{counts[pk].parallel:,}"
            told %= {"queue": queue, "slots": slots, "parallel": parallel}
            found[pk] = ("running", told)
    return found


def estimate_pace(ends: Sequence[datetime], now: datetime) -> Pace | None:
    """Return the pace of `ends`, the newest first, up to `now`; None when there are too few.

    The time from the oldest end to now is cut into ten equal parts. The range is 1.645
    standard errors to each side, which holds nine in ten: of the spread of their counts, or of
    independent arrivals if that is larger. None for fewer than five ends.
    """
    if len(ends) < 5:
        return None
    oldest = ends[-1]
    span = max((now - oldest).total_seconds(), 1e-3)
    counted = len(ends) - 1  # the oldest opens the span
    slices = 10
    counts = [0] * slices
    for end in ends[:-1]:
        part = (end - oldest).total_seconds() / span
        counts[min(slices - 1, max(0, int(part * slices)))] += 1
    mean = counted / slices
    spread = sum((count - mean) ** 2 for count in counts) / (slices - 1)
    error = sqrt(max(spread, mean) / slices) * slices
    return Pace(
        per_second=counted / span,
        low=max(0.0, counted - 1.645 * error) / span,
        high=(counted + 1.645 * error) / span,
    )


def _after(now: datetime, left: int, per_second: float) -> datetime | None:
    """Return when `left` details will have ended; None for never, or in more than ten years."""
    if per_second <= 0 or left / per_second > 10 * 365 * 86400:
        return None
    return now + timedelta(seconds=left / per_second)
