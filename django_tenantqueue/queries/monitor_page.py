"""Statements that find what limits a monitor, and the errors of its details."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import fetch


@dataclass(frozen=True, slots=True)
class DetailGroup:
    """Details that do or wait for the same.

    `part`: running, ready, retrying, or the gate that holds them: user, exclusive, task. `gate`:
    the key of the user, or the name of the task.
    """

    part: str
    queue_id: int
    is_async: bool
    gate: str | None
    jobs: int
    first_id: int


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failed details of one task and one exception class, and the newest of them."""

    task: str
    error: str
    details: int
    last_at: datetime
    example_id: int
    message: str
    looked_at: int
    """Failed details of all groups that were read."""


def group_details(using: str, monitor_id: int, *, most: int, groups: int) -> list[DetailGroup]:
    """Group details in flight and set aside, up to `most` of each, the largest groups first."""
    params = {"monitor_id": monitor_id, "most": most, "groups": groups}
    return [DetailGroup(*row) for row in fetch(using, "group_details", params)]


def group_failures(using: str, monitor_id: int, *, most: int, groups: int) -> list[FailureGroup]:
    """Group the newest `most` failed details, the largest groups first."""
    params = {"monitor_id": monitor_id, "most": most, "groups": groups}
    return [FailureGroup(*row) for row in fetch(using, "group_failures", params)]
