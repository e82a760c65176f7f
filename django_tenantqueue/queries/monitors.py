"""Statements about monitors: their details and anchors, counts, feeding and ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import starmap
from typing import Any

from ..gate_keys import MONITOR
from ..states import State
from .base import Where, array, fetch
from .gates import Moved, Released, add_gates
from .locks import LockClass


@dataclass(frozen=True, slots=True)
class DetailCounts:
    """Counts of a monitor's details, and its columns at that moment.

    The anchor is final when it has no state.
    """

    monitor_id: int
    added: int
    in_line: int
    ready: int
    running: int
    retrying: int
    failed: int
    cancelled: int
    anchor_state: str | None
    anchor_line: str | None
    is_cancelled: bool
    paused: bool
    keep_open: bool
    parallel: int
    stop_after_failures: int | None
    aside: int
    """Details in the lines of tasks that are paused or full."""

    @property
    def left(self) -> int:
        """Details that have not ended."""
        return self.in_line + self.ready + self.running + self.retrying + self.aside


@dataclass(frozen=True, slots=True)
class UnfinishedDetail:
    """A detail that has not ended, or the anchor. `is_asked`: its cancellation was requested.

    `part`: in_line, ready, running, retrying, aside, or anchor.
    """

    id: int
    part: str
    is_asked: bool


@dataclass(frozen=True, slots=True)
class OpenMonitor:
    """A monitor with unfinished jobs. `is_open`: a release would change something."""

    id: int
    is_open: bool
    is_cancelled: bool


def release_monitors(
    where: Where, keys: Sequence[str], *, by_tenant: bool
) -> tuple[Released, list[str]]:
    """Feed locked monitors or take details back: see as_released()."""
    params = {"keys": list(keys), "by_tenant": by_tenant}
    return as_released(fetch(where, "release_monitors", params))


def as_released(rows: Iterable[tuple[Any, ...]]) -> tuple[Released, list[str]]:
    """Return the result of a release, and the monitors that seem to have no details left."""
    done = Released()
    ended = []
    for job in starmap(Moved, rows):
        if job.state == "done":
            ended.append(str(job.monitor))
            continue
        if job.state == "ready":  # without passing: its priority was changed
            place = (job.lane, job.queue_id, job.priority)
            done.note(job.job_id, place, moved=not job.passes)
        # one that was fed has come to its next gate, one that was taken back leaves its later ones;
        # an anchor has got another place in the line of its session
        add_gates(done.later, (gate for gate in job.gates() if gate[0] != MONITOR))
    return done, ended


def lock_additions(where: Where, keys: Sequence[str]) -> list[str]:
    """Let no session add details to these monitors until the commit; return those that it locked.

    It does not wait: a monitor that details are being added to is left out.
    """
    params = {"lock_class": LockClass.MONITOR_ADDITION, "keys": list(keys)}
    ((locked,),) = fetch(where, "try_gates", params)
    return list(locked)


def end_monitors(where: Where, keys: Sequence[str]) -> int:
    """End those of these locked monitors that have no details left; return how many."""
    params = {"keys": list(keys), "by_tenant": False}
    return len(fetch(where, "end_monitors", params)) if keys else 0


def find_open_monitors(
    where: Where, *, after: int, most: int, by_tenant: bool
) -> list[OpenMonitor]:
    """Read up to `most` monitors with unfinished jobs, in the order of their ids."""
    params = {"after": after, "most": most, "by_tenant": by_tenant}
    return [OpenMonitor(*row) for row in fetch(where, "find_open_monitors", params)]


def count_details(using: str, ids: Sequence[int]) -> dict[int, DetailCounts]:
    """Count the details of monitors."""
    rows = fetch(using, "count_details", {"ids": array(ids)})
    return {row[0]: DetailCounts(*row) for row in rows}


def find_monitors_ahead(using: str, ids: Sequence[int]) -> dict[int, int]:
    """Return, by the ids of those that have one, a monitor whose ready details come first."""
    return dict(fetch(using, "find_monitors_ahead", {"ids": array(ids)}))


def list_detail_ends(
    using: str, ids: Sequence[int], *, most: int, since_seconds: float
) -> dict[int, list[datetime]]:
    """Return when the newest details of monitors ended, the newest first."""
    params = {"ids": array(ids), "most": most, "since_seconds": since_seconds}
    found: dict[int, list[datetime]] = {}
    for monitor_id, ended_at in fetch(using, "list_detail_ends", params):
        found.setdefault(monitor_id, []).append(ended_at)
    return found


def list_unfinished_details(
    using: str, monitor_id: int, *, most: int, after: int = 0
) -> list[UnfinishedDetail]:
    """Return the first details in flight, in the line, and aside, up to `most` of each.

    Their ids are above `after`.
    """
    params = {"monitor_id": monitor_id, "most": most, "after": after}
    return [UnfinishedDetail(*row) for row in fetch(using, "list_unfinished_details", params)]


def list_ended_details(
    using: str,
    monitor_id: int,
    state: State,
    *,
    before: tuple[datetime | None, int],
    most: int,
) -> list[tuple[int, datetime]]:
    """Return ids and ends of jobs that ended in a state, the last first, its anchor too.

    `before` is the end and the id of the last one that the caller has; None as the end is the
    beginning.
    """
    before_at, before_id = before
    params = {
        "monitor_id": monitor_id,
        "state": state.value,
        "before_at": "infinity" if before_at is None else before_at,
        "before": before_id,
        "most": most,
    }
    return [(row[0], row[1]) for row in fetch(using, "list_ended_details", params)]
