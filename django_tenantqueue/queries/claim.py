"""The statements of a claim: their parameters and their answers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from ..batch_sizes import BATCH
from .base import array
from .gates import Place
from .locks import LockClass
from .survey import FIRST_PLACE, Taken, taken_params

MOST_ROOM = 200
"""Most jobs that one claim takes."""
BATCH_SECONDS = 0.05
"""Starts of a queue with a rate are collected for this time, if its burst loses none by it."""
MOST_PASSED = BATCH
"""Most jobs of closed tasks, and of tasks left to others, that a claim reads past in one place."""
Pair = tuple[int, int]
"""A lane, and the id of a queue with ready jobs in it."""
Key = tuple[int, int]
"""Priority and id of a job: the order inside a pair."""
NO_ARRIVALS = sys.maxsize
"""An id that no job reaches."""
MOST_ARRIVALS = MOST_ROOM // 2
"""Most ids of new jobs that a claim reads."""


@dataclass(slots=True)
class ClaimRequest:
    """The room for jobs of one claim, and the places that it reads."""

    worker_id: int
    room_threads: int
    room_async: int
    at: float = 0.0
    """Monotonic time."""
    known: Mapping[Place, int] = field(default_factory=dict)
    """Places that may have ready jobs, and their least ids."""
    arrivals_after: int = NO_ARRIVALS
    """The claim reads jobs with higher ids, at most MOST_ARRIVALS."""
    cursor: Place = FIRST_PLACE
    """The claim steps from this place to the next ones with ready jobs."""
    most_steps: int = 200
    by_ids: bool = False
    """Places are read from their least ids on, because finished jobs left many entries before."""
    taken: Mapping[int, Taken] = field(default_factory=dict)
    """Since when slots of some queues have been taken, with `by_ids`."""
    starts: dict[int, int] = field(default_factory=dict)
    """Lane -> queue served last in it."""
    first_start: int = 0
    """Where the turns begin in other lanes."""
    skip_queues: Sequence[int] = ()
    last_lane: int = 0
    last_queue: int = 0
    last_used: int = 0
    """The turn that the last claim left unfinished: its queue, and the jobs served in it."""
    most_locks: int = 50
    queues: list[str] | None = None
    exclude_queues: list[str] | None = None
    tenants: list[str] | None = None
    executor: str | None = None
    """The executor whose queues are served; None: the workers' queues."""
    left_tasks: Sequence[str] = ()
    """Tasks whose jobs are left to other workers: see UnknownTasks."""
    left_jobs: Sequence[int] = ()
    """Jobs that are left to other workers."""
    start_keys: Mapping[Pair, Key] = field(default_factory=dict)
    """Where claims begin to read in some lanes and queues: see PassedOver."""

    def is_filled_by(self, jobs: Sequence[ClaimedJob]) -> bool:
        """Whether `jobs` take all the room of at least one kind."""
        coroutines = sum(job.is_async for job in jobs)
        threaded = len(jobs) - coroutines
        return (0 < self.room_threads <= threaded) or (0 < self.room_async <= coroutines)


class ClaimedJob(NamedTuple):
    """A job that this worker holds. `args`, `context` are JSON texts."""

    id: int
    claim_seq: int
    queue_id: int
    lane: int
    is_async: bool
    attempt: int
    max_attempts: int
    task: str
    source_type: str
    source_id: str
    source_method: str
    args: str
    timeout_seconds: float | None = None
    hard_timeout_seconds: float | None = None
    expires_at: datetime | None = None
    context: str | None = None
    nth_served: int = 0
    used: int = 0
    weight: int = 1
    slots_left: int = 0
    """Free slots of its queue after this job."""
    gates: str | None = None
    """The gates it has passed, for JobGates.read()."""
    is_controlled: bool = False
    """Its task is paused or limited: it must not start without a slot of its task."""
    waited_seconds: float = 0.0
    """Time from when it could run until this claim."""


class Status(StrEnum):
    """The state of a place when a claim read it."""

    OPEN = "open"
    EMPTY = "empty"
    """No ready job."""
    BLOCKED = "blocked"
    """The queue is paused or full."""
    SPENT = "spent"
    """The queue has used up its rate."""
    FOREIGN = "foreign"
    """The queue is not this worker's."""


class Sight(NamedTuple):
    """One place as a claim saw it."""

    status: Status
    place: Place
    first_id: int | None
    held: bool
    """Its queue was locked, or shared."""


@dataclass(frozen=True, slots=True)
class Look:
    """The answer of the first half of a claim."""

    locks: int = 0
    sights: Sequence[Sight] = ()
    """In the order in which they are served."""
    spent_seconds: Mapping[int, float] = field(default_factory=dict)
    """Queue that has used up its rate -> seconds until its next start is due."""
    steps: dict[Place, int] = field(default_factory=dict)
    """The places that its steps reached, in their order, and their first ready jobs."""
    arrivals: Mapping[Place, int] = field(default_factory=dict)
    """The places of new ready jobs, and the first id of each."""
    is_pass: bool = True
    """The steps reached the last place."""
    last_arrival: int = 0
    """The last id that was given to a job."""
    has_controls: bool = False
    """Some tasks are paused or limited: see PassedOver."""
    edits: int = 0
    """Updates of queues so far, by the server's statistics."""
    entries: int = 0
    """Index entries that the claim read."""

    @property
    def held_places(self) -> list[Place]:
        """The places whose queues were locked."""
        return [sight.place for sight in self.sights if sight.held]

    @property
    def held(self) -> set[int]:
        """The queues that were locked."""
        return {queue_id for _, queue_id, _ in self.held_places}

    @property
    def contended(self) -> set[int]:
        """The queues that other sessions had locked."""
        opened = {sight.place[1] for sight in self.sights if sight.status is Status.OPEN}
        return opened - self.held


def lock_params(request: ClaimRequest) -> dict[str, Any]:
    """Return the parameters of lock_queues.sql."""
    known = request.known
    return {
        **taken_params(request.taken),
        "known_lanes": array(lane for lane, _, _ in known),
        "known_queues": array(queue_id for _, queue_id, _ in known),
        "known_priorities": array(priority for _, _, priority in known),
        "known_ids": array(known.values()),
        "arrivals_after": request.arrivals_after,
        "most_arrivals": MOST_ARRIVALS,
        "from_lane": request.cursor[0],
        "from_queue": request.cursor[1],
        "from_priority": request.cursor[2],
        "is_first": request.cursor == FIRST_PLACE,
        "most_steps": request.most_steps,
        "by_ids": request.by_ids,
        "lanes": array(request.starts),
        "starts": array(request.starts.values()),
        "first_start": request.first_start,
        "most_locks": request.most_locks,
        "lock_class": LockClass.QUEUE,
        "batch_seconds": BATCH_SECONDS,
        "skip_queues": array(request.skip_queues),
        "queues": request.queues,
        "exclude_queues": request.exclude_queues,
        "tenants": request.tenants,
        "executor": request.executor,
    }


def start_params(starts: Mapping[Pair, Key]) -> dict[str, Any]:
    """Return the parameters that say where to begin to read in some lanes and queues."""
    return {
        "start_lanes": array(lane for lane, _ in starts),
        "start_queues": array(queue_id for _, queue_id in starts),
        "start_priorities": array(priority for priority, _ in starts.values()),
        "start_ids": array(job_id for _, job_id in starts.values()),
    }


def claim_params(request: ClaimRequest) -> dict[str, Any]:
    """Return the parameters of claim_jobs.sql."""
    return {
        **taken_params(request.taken),
        **start_params(request.start_keys),
        "by_ids": request.by_ids,
        "worker": request.worker_id,
        "most_passed": MOST_PASSED,
        "left_tasks": list(request.left_tasks),
        "left_jobs": array(request.left_jobs),
        "room": request.room_threads + request.room_async,
        "room_threads": request.room_threads,
        "room_async": request.room_async,
        "most_locks": request.most_locks,
        "last_lane": request.last_lane,
        "last_queue": request.last_queue,
        "last_used": request.last_used,
    }


def as_look(row: tuple[Any, ...] | None, request: ClaimRequest) -> Look:
    """Return the row of lock_queues.sql as a Look."""
    assert row is not None, "an aggregate has one row"
    locks, *columns, spent_seconds, steps, arrivals, last_arrival, has_controls, edits, entries = (
        row
    )
    sights = [
        Sight(Status(status), (lane, queue_id, priority), first_id, is_held)
        for status, lane, queue_id, priority, first_id, is_held in zip(
            *(column or () for column in columns), strict=True
        )
    ]
    spent = [sight.place[1] for sight in sights if sight.status is Status.SPENT]
    stepped = {(step[0], step[1], step[2]): step[3] for step in steps or ()}
    return Look(
        locks=locks,
        sights=sights,
        spent_seconds=dict(zip(spent, spent_seconds or (), strict=True)),
        steps=stepped,
        arrivals={(came[0], came[1], came[2]): came[3] for came in arrivals or ()},
        is_pass=len(stepped) < request.most_steps,
        last_arrival=last_arrival,
        has_controls=has_controls,
        edits=edits or 0,
        entries=entries or 0,
    )
