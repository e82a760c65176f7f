"""Statements behind monitors: their anchors and details, what is left of them, what to feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connections

from .base import array, fetch
from .direct import fetch_prepared
from .enqueue import NewJob
from .gates import ADDITION_LOCK_CLASS


class NewAnchor(NewJob):
    """A new anchor: a job that stands for all details of a monitor."""

    id: int
    monitor_id: int
    session_key: str | None


@dataclass(frozen=True, slots=True)
class NewDetails:
    """Details for the line of a monitor. `details`: a JSON array, see insert_details.sql."""

    monitor_id: int
    priority: int
    lane: int
    context: str | None
    details: str


@dataclass(frozen=True, slots=True)
class DetailCounts:
    """What has become of a monitor's details. The anchor is final when it has no state."""

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


@dataclass(frozen=True, slots=True)
class OpenMonitor:
    """A monitor with unfinished jobs. `is_open`: a release would change something."""

    id: int
    is_open: bool
    is_cancelled: bool


def next_job_id(using: str) -> int:
    """Return an id for a job that is about to be inserted."""
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT nextval('tenantqueue_job_id_seq')")
        return int(cursor.fetchone()[0])


def insert_anchor(using: str, anchor: NewAnchor) -> None:
    """Insert the anchor of a monitor."""
    fetch(using, "insert_anchor", anchor)


def insert_details(using: str, details: NewDetails) -> int:
    """Insert details; return how many."""
    params = {name: getattr(details, name) for name in NewDetails.__slots__}
    return len(fetch_prepared(connections[using], "insert_details", params))


def share_addition(using: str, monitor_id: int) -> None:
    """Keep a monitor from ending until the end of the open transaction."""
    params = {"lock_class": ADDITION_LOCK_CLASS, "key": str(monitor_id)}
    fetch(using, "share_addition", params)


def find_open_monitors(using: str, *, after: int, most: int, by_tenant: bool) -> list[OpenMonitor]:
    """Look at up to `most` monitors with unfinished jobs, in the order of their ids."""
    params = {"after": after, "most": most, "by_tenant": by_tenant}
    return [OpenMonitor(*row) for row in fetch(using, "find_open_monitors", params)]


def count_details(using: str, ids: Sequence[int]) -> dict[int, DetailCounts]:
    """Count the details of monitors."""
    rows = fetch(using, "count_details", {"ids": array(ids)})
    return {row[0]: DetailCounts(*row) for row in rows}


def list_detail_ends(
    using: str, monitor_id: int, *, most: int, since_seconds: float
) -> list[datetime]:
    """Return when the newest details of a monitor ended, the newest first."""
    params = {"monitor_id": monitor_id, "most": most, "since_seconds": since_seconds}
    return [row[0] for row in fetch(using, "list_detail_ends", params)]
