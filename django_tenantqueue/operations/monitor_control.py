"""Changes that operators make to monitors, and the duty that feeds them.

`using` is the alias of the jobs' database; None is the configured one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from ..batch_sizes import BATCH
from ..conf import alias_of, get_settings
from ..gate_keys import MONITOR, JobGates
from ..models import ConcurrentJobMonitor, Job
from ..queries import monitors as queries
from ..queries.base import Where
from ..states import State
from ..status.display_limits import PAGE
from ..status.monitor_details import ENDED
from . import control
from .gates import release_and_wake, release_later
from .monitor_retry import FailedRetry
from .tuning import Ids, ids_of, switch_rows, tune_rows

TUNABLE = ("parallel", "interval_seconds", "priority", "paused", "stop_after_failures")
"""Columns of a monitor that operators change."""


def _release(using: str, ids: Iterable[int]) -> None:
    """Feed or take back details of these monitors after the commit."""
    release_later(using, [JobGates(monitor=str(monitor_id)) for monitor_id in ids])


def tune_monitor(ids: Ids, *, using: str | None = None, **changes: Any) -> Sequence[int]:
    """Change columns of monitors, the TUNABLE ones.

    Return those that have other values now. Only the named columns are written, whatever the
    number of details: those that are fed and have no slot follow at once, the others when they are
    fed. Raises InvalidOption for another column and Django's ValidationError for a bad value;
    ConcurrentJobMonitor.DoesNotExist.
    """
    alias = alias_of(using)
    tuned = tune_rows(alias, ConcurrentJobMonitor, ids, changes, TUNABLE)
    _release(alias, [monitor.pk for monitor in tuned.rows])
    return tuned.changed


def pause_monitors(ids: Ids, *, using: str | None = None) -> list[int]:
    """Feed no more details of these monitors; return those that were not paused before."""
    return _switch(ids, paused=True, using=using)


def resume_monitors(ids: Ids, *, using: str | None = None) -> list[int]:
    """Feed details of these monitors again; return those that were paused before."""
    return _switch(ids, paused=False, using=using)


def _switch(ids: Ids, *, paused: bool, using: str | None) -> list[int]:
    alias = alias_of(using)
    chosen = ids_of(ids, ConcurrentJobMonitor)
    monitors = ConcurrentJobMonitor.objects.filter(pk__in=chosen)
    changed = switch_rows(alias, monitors, {"paused": paused})
    _release(alias, chosen)
    return [monitor.pk for monitor in changed]


DETAILS_SHOWN = PAGE * 2
"""Details of a state that list_details() returns at most."""


def list_details(using: str, monitor: ConcurrentJobMonitor, part: str) -> list[Job]:
    """Return up to DETAILS_SHOWN details that `part`, a count of Progress, has counted.

    Unfinished ones in their order, finished ones the newest first.
    """
    jobs = Job.objects.using(using)
    if part in ENDED:
        ended = jobs.finished().filter(monitor_id=monitor.pk, state=ENDED[part])
        newest = ended.exclude(pk=monitor.anchor_id).order_by("-finished_at")
        return list(newest[:DETAILS_SHOWN])
    found = queries.list_unfinished_details(using, monitor.pk, most=BATCH)
    ids = [detail.id for detail in found if detail.part == part][:DETAILS_SHOWN]
    return list(jobs.unfinished().filter(pk__in=ids).order_by("pk"))


def cancel_monitor(monitor_id: int, *, using: str | None = None) -> int:
    """Cancel a monitor and all its details; return how many ended here.

    From here on it feeds nothing. Details that wait are cancelled in steps of a thousand, those
    with a slot are asked to stop, see control.cancel(). The callback does not run. After a
    crash the maintenance cancels the rest. Nothing happens when it has ended already.
    Inside a transaction all of it happens at the commit or not at all.
    """
    alias = alias_of(using)
    if not mark_cancelled(monitor_id, alias):
        return 0
    ended = 0
    while count := cancel_step(alias, monitor_id):
        ended += count
    return ended


def find_cancelled(ids: Ids, *, using: str | None = None) -> list[int]:
    """Return those of these jobs that cannot be retried since their monitor was cancelled."""
    alias = alias_of(using)
    monitors = ConcurrentJobMonitor.objects.using(alias).exclude(cancelled_at=None)
    jobs = Job.objects.using(alias).finished().filter(pk__in=ids_of(ids, Job))
    jobs = jobs.filter(state__in=(State.ERROR, State.CANCELLED))
    return list(jobs.filter(monitor_id__in=monitors.values("pk")).values_list("pk", flat=True))


def mark_cancelled(monitor_id: int, using: str) -> bool:
    """Feed no more of a monitor, and leave it to the maintenance to cancel its jobs.

    False: it has ended, or was cancelled before.
    """
    if not queries.list_unfinished_details(using, monitor_id, most=1):
        return False
    rows = ConcurrentJobMonitor.objects.filter(pk=monitor_id, cancelled_at=None)
    marked = switch_rows(using, rows, {"cancelled_at": timezone.now()})
    _release(using, [monitor_id])
    return bool(marked)


def cancel_step(using: str, monitor_id: int) -> int:
    """Cancel up to BATCH waiting details of a cancelled monitor; return how many ended.

    When none waits, those with a slot are asked to stop. The anchor goes last: until then the
    monitor has its turn in the session.
    """
    found = queries.list_unfinished_details(using, monitor_id, most=BATCH)
    details = [job for job in found if job.part != "anchor"]
    ids = [detail.id for detail in details if detail.part != "running"]
    ids = ids or [detail.id for detail in details if not detail.is_asked]
    if ids:
        return len(control.cancel(ids, using=using, recorded=False)[0])
    if found and not details:
        control.cancel([found[0].id], using=using, recorded=False)
    return 0


def retry_failed_details(monitor_id: int, *, using: str | None = None) -> int:
    """Put the failed details of a monitor into its line again; return how many.

    In steps of a thousand, each in a transaction of its own unless the caller has opened one. It
    feeds them with priority and limits as they are; a monitor that has ended does not take its turn
    in a session again, and its callback does not run again. Raises InvalidState for a
    cancelled one; ConcurrentJobMonitor.DoesNotExist.
    """
    retry = FailedRetry.start(alias_of(using), monitor_id)
    while not retry.is_done:
        retry.step()
    return retry.retried


@dataclass(slots=True)
class Feeder:
    """Finds monitors that a release would feed, tune or end, a bounded number in each step."""

    most: int = 500
    """Monitors that one step reads."""
    after: int = 0

    def step(self, using: str, look: Where | None = None) -> int:
        """Feed or end the next monitors; return how many details became ready or were cancelled.

        `look` is a connection for reads that keeps its plans; None: read on `using`.
        """
        by_tenant = get_settings().priority_scope == "tenant"
        found = queries.find_open_monitors(
            look or using, after=self.after, most=self.most, by_tenant=by_tenant
        )
        self.after = found[-1].id if len(found) == self.most else 0
        keys = {str(monitor.id) for monitor in found if monitor.is_open}
        done = release_and_wake(using, {MONITOR: keys}) if keys else 0
        for monitor in found:
            if monitor.is_cancelled:
                done += cancel_step(using, monitor.id)
        return done
