"""Statements of a worker process: claim, finish, fail, return, watch.

All run on the worker's own connection. `exchange` sends the finish of what is done and the claim
of what comes next in one transaction and one round trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import psycopg

from ..gates import MONITOR, JobGates
from ..states import State
from .base import (
    LOCK_TIMEOUT,
    array,
    execute,
    execute_bounded,
    fetch,
    is_pooled,
    statement,
    text_array,
)
from .gates import GATE_LOCK_CLASSES, Halt, Place, Released, halt_params
from .monitors import as_released
from .survey import Taken, first_taken_params, taken_params

QUEUE_LOCK_CLASS = 0x74717175
"""First key of the advisory lock that claims of a queue without limit share; the second is the
queue's id. The trigger tenantqueue_queue_limited takes it, too."""
LINE_LOCK_CLASS = 0x7471746E
"""First key of the advisory lock for whose turn it is to claim; the second is 0."""
LINE_SECONDS = 3.0
"""Longest wait for it. A worker that dies in line may claim once more, when its turn comes; rescue
finds jobs of workers that have no row any more, too."""
LINE_TIMEOUT = b"SET LOCAL lock_timeout = %d" % (1000 * LINE_SECONDS)
MOST_ROOM = 200
"""Jobs that one claim takes at most."""
BATCH_SECONDS = 0.05
"""Starts of a queue with a rate are put off so long, if its burst is large enough to lose none: one
claim then takes all that the rate has brought."""
MOST_PASSED = 1000
"""Jobs of closed tasks that a claim reads past in one lane of a queue."""
NO_ERRORS: Mapping[tuple[int, int], str] = {}
Pair = tuple[int, int]
"""A lane, and the id of a queue with ready jobs in it."""
Key = tuple[int, int]
"""Priority and id of a job: the order inside a pair."""


FIRST_PLACE: Place = (-32768, 0, -32768)
"""Before all places."""
NO_ARRIVALS = 2**63 - 1
"""An id that no job reaches."""
MOST_ARRIVALS = 100
"""Latest ids that a claim looks at. Half as many: in a system with thousands of busy queues, jobs of
a bulk that is spread over many queues are found later. Twice as many: each claim reads more."""


@dataclass(slots=True)
class ClaimRequest:
    """What one claim asks for, and where it looks."""

    worker_id: int
    room_threads: int
    room_async: int
    at: float = 0.0
    """Monotonic time."""
    known: Mapping[Place, int] = field(default_factory=dict)
    """Places that may have ready jobs, and the least ids there."""
    arrivals_after: int = NO_ARRIVALS
    """It looks at jobs with higher ids, MOST_ARRIVALS at most."""
    cursor: Place = FIRST_PLACE
    """It steps from this place to the next ones that have ready jobs."""
    most_steps: int = 200
    by_ids: bool = False
    """Jobs below the least ids of places have gone, and reading past what they left is costly."""
    taken: Mapping[int, Taken] = field(default_factory=dict)
    """Since when slots of some queues have been taken, with `by_ids`."""
    starts: dict[int, int] = field(default_factory=dict)
    """Lane -> queue served last in it."""
    first_start: int = 0
    """Where the turns begin in a lane of which nothing is known."""
    skip_queues: Sequence[int] = ()
    last_lane: int = 0
    last_queue: int = 0
    last_used: int = 0
    """The turn that the last claim left unfinished: its queue and the jobs it has had."""
    most_locks: int = 50
    queues: list[str] | None = None
    exclude_queues: list[str] | None = None
    tenants: list[str] | None = None
    start_keys: Mapping[Pair, Key] = field(default_factory=dict)
    """Where ready jobs begin that are not passed over, for some lanes and queues."""

    def is_filled_by(self, jobs: Sequence[ClaimedJob]) -> bool:
        """Whether `jobs` take all the room of at least one kind."""
        coroutines = sum(job.is_async for job in jobs)
        threaded = len(jobs) - coroutines
        return (0 < self.room_threads <= threaded) or (0 < self.room_async <= coroutines)


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that this worker holds. `args`, `context` are JSON texts."""

    id: int
    claim_seq: int
    queue_id: int
    lane: int
    is_async: bool
    attempt: int
    max_attempts: int
    name: str
    source_type: str
    source_id: str
    source_method: str
    args: str
    timeout_seconds: float | None
    hard_timeout_seconds: float | None
    expires_at: datetime | None
    context: str | None
    nth_served: int
    turn: int
    used: int
    weight: int
    slots_left: int
    """Free slots of its queue after this job."""
    gates: str | None = None
    """The gates it has passed, for JobGates.read()."""
    is_controlled: bool = False
    """Its task is paused or capped: it must not start without a slot of its task."""


class Status(StrEnum):
    """What a claim found at a place."""

    OPEN = "open"
    EMPTY = "empty"
    """No ready job."""
    BLOCKED = "blocked"
    """The queue is paused or full."""
    SPENT = "spent"
    """The queue has used up its rate."""
    FOREIGN = "foreign"
    """The queue is not this worker's."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a claim found at one place."""

    status: Status
    place: Place
    first_id: int | None
    held: bool
    """Its queue was locked, or shared."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the first half of a claim saw."""

    locks: int = 0
    sights: Sequence[Sight] = ()
    """In the order in which they are served."""
    spent_seconds: Mapping[int, float] = field(default_factory=dict)
    """Queue that has used up its rate -> in how many seconds to look again."""
    steps: dict[Place, int] = field(default_factory=dict)
    """The places it stepped to, in their order, and their first ready jobs."""
    arrivals: Mapping[Place, int] = field(default_factory=dict)
    """The places of the latest ready jobs, and the first of these."""
    is_pass: bool = True
    """The steps came to the end: no place lies behind them."""
    last_arrival: int = 0
    """The last id that a job was given."""
    has_controls: bool = False
    """Some tasks are paused or capped: see PassedOver."""
    entries: int = 0
    """Index entries that it read."""

    @property
    def held_places(self) -> list[Place]:
        """The places whose queues were locked."""
        return [sight.place for sight in self.sights if sight.held]

    @property
    def held(self) -> set[int]:
        """The queues that were locked."""
        return {queue_id for _, queue_id, _ in self.held_places}

    def queues(self, status: Status) -> set[int]:
        """Return the queues of that status."""
        return {sight.place[1] for sight in self.sights if sight.status == status}

    @property
    def contended(self) -> set[int]:
        """The queues that others had locked."""
        return self.queues(Status.OPEN) - self.held


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of one run.

    `age_seconds` is the time since its start, None when it was never begun; `result`, `extra` are
    JSON texts; `extra` may hold the keys error, stats, done, total, message.
    """

    id: int
    claim_seq: int
    state: str
    age_seconds: float | None
    result: str | None = None
    result_ref: str | None = None
    extra: str | None = None
    gates: str | None = None

    def halt(self) -> Halt | None:
        """Return what may halt the session of this job, when it did not end well."""
        if self.gates is None or self.state == State.SUCCESS:
            return None
        gates = JobGates.read(self.gates)
        return None if gates.session is None else Halt(gates.session, self.id, gates.halts)


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that failed and is to be repeated after `delay_seconds`."""

    id: int
    claim_seq: int
    delay_seconds: float
    extra: str
    gates: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is known of a run that goes on."""

    id: int
    claim_seq: int
    age_seconds: float
    extra: str | None


@dataclass(frozen=True, slots=True)
class Watched:
    """A claim that still stands."""

    id: int
    claim_seq: int
    cancel: bool
    paused: bool


@dataclass(slots=True)
class Exchange:
    """What came back from one round trip."""

    finished: set[int]
    rescheduled: set[int]
    jobs: list[ClaimedJob]
    look: Look | None
    fed: Released = field(default_factory=Released)
    """What was fed; its `later` names the gates that are still to be released."""
    taken: dict[int, Taken] = field(default_factory=dict)
    """Since when slots are taken of the queues that this claim had for itself."""


def _finish_params(worker_id: int, done: Sequence[Finished], max_errors: int) -> dict[str, Any]:
    nothing = "{" + ",".join(["NULL"] * len(done)) + "}"
    return {
        "worker": worker_id,
        "max_errors": max_errors,
        "ids": array(d.id for d in done),
        "seqs": array(d.claim_seq for d in done),
        "states": array(d.state for d in done),
        "ages": array("NULL" if d.age_seconds is None else d.age_seconds for d in done),
        "results": text_array(d.result for d in done)
        if any(d.result is not None for d in done)
        else nothing,
        "result_refs": text_array(d.result_ref for d in done)
        if any(d.result_ref is not None for d in done)
        else nothing,
        "extras": text_array(d.extra for d in done)
        if any(d.extra is not None for d in done)
        else nothing,
    }


def _reschedule_params(worker_id: int, failed: Sequence[Failed], max_errors: int) -> dict[str, Any]:
    return {
        "worker": worker_id,
        "max_errors": max_errors,
        "ids": array(f.id for f in failed),
        "seqs": array(f.claim_seq for f in failed),
        "delays": array(f.delay_seconds for f in failed),
        "extras": text_array(f.extra for f in failed),
    }


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
        "lock_class": QUEUE_LOCK_CLASS,
        "batch_seconds": BATCH_SECONDS,
        "skip_queues": array(request.skip_queues),
        "queues": request.queues,
        "exclude_queues": request.exclude_queues,
        "tenants": request.tenants,
    }


def start_params(starts: Mapping[Pair, Key]) -> dict[str, Any]:
    """Return the parameters that say where ready jobs begin that are not passed over."""
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
        "room": request.room_threads + request.room_async,
        "room_threads": request.room_threads,
        "room_async": request.room_async,
        "most_locks": request.most_locks,
        "last_lane": request.last_lane,
        "last_queue": request.last_queue,
        "last_used": request.last_used,
    }


def exchange(
    connection: psycopg.Connection[Any],
    worker_id: int,
    *,
    finished: Sequence[Finished] = (),
    failed: Sequence[Failed] = (),
    request: ClaimRequest | None = None,
    max_errors: int = 10,
    in_line: bool = False,
    feed: Sequence[str] = (),
    by_tenant: bool = False,
) -> Exchange:
    """Store what is done and claim what `request` asks for, in one transaction, one round trip.

    `feed`: monitors that are fed between the two, unless somebody else does so just now; these are
    handed back, to be waited for in a transaction of their own. `by_tenant`: see release_monitors.

    `in_line`: wait for a turn to claim; nothing may be stored with it, for its rows would stay
    locked meanwhile. Raises psycopg.errors.LockNotAvailable when it takes longer than LINE_SECONDS.

    `finished` and `failed` must be sorted by id (the order in which rows are locked). An error
    undoes everything of the call; the connection is usable again afterwards.
    """
    done = again = looked = claimed = locked = fed = taken = None
    halts = [halt for end in finished if (halt := end.halt())]
    prepare = connection.prepare_threshold is not None
    # the server takes a pipeline for one transaction, in the isolation level of the session: see
    # "Pipelining" in its documentation of the extended query protocol
    is_explicit = in_line or is_pooled(connection)
    try:
        with connection.pipeline():
            if is_explicit:
                connection.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED", prepare=prepare)
            if is_pooled(connection):
                connection.execute(LOCK_TIMEOUT, prepare=prepare)
            if finished:
                params = _finish_params(worker_id, finished, max_errors)
                done = connection.execute(statement("finish_jobs"), params, prepare=prepare)
            if failed:
                params = _reschedule_params(worker_id, failed, max_errors)
                again = connection.execute(statement("reschedule_jobs"), params, prepare=prepare)
            if halts:
                connection.execute(statement("halt_sessions"), halt_params(halts), prepare=prepare)
            if feed:
                params = {"lock_class": GATE_LOCK_CLASSES[MONITOR], "keys": list(feed)}
                locked = connection.execute(statement("try_gates"), params, prepare=prepare)
                params = {"keys": None, "by_tenant": by_tenant}
                fed = connection.execute(statement("release_monitors"), params, prepare=prepare)
            if in_line:
                assert not finished
                assert not failed
                assert not feed
                connection.execute(LINE_TIMEOUT, prepare=prepare)
                params = {"lock_class": LINE_LOCK_CLASS}
                connection.execute(statement("wait_at_turnstile"), params, prepare=prepare)
            if request is not None:
                params = lock_params(request)
                looked = connection.execute(statement("lock_queues"), params, prepare=prepare)
                params = claim_params(request)
                claimed = connection.execute(statement("claim_jobs"), params, prepare=prepare)
                if request.by_ids:
                    params = first_taken_params(request.taken)
                    taken = connection.execute(
                        statement("find_first_taken"), params, prepare=prepare
                    )
            if is_explicit:
                connection.execute(b"COMMIT", prepare=prepare)
    except psycopg.Error:
        if not connection.broken:
            connection.rollback()
        raise
    jobs = [ClaimedJob(*row) for row in claimed] if claimed is not None else []
    jobs.sort(key=lambda job: job.nth_served)
    return Exchange(
        finished={row[0] for row in done} if done is not None else set(),
        rescheduled={row[0] for row in again} if again is not None else set(),
        jobs=jobs,
        look=_look(looked.fetchone(), request) if looked is not None and request else None,
        fed=_fed(feed, locked, fed),
        taken={row[0]: Taken(row[1], row[2]) for row in taken} if taken is not None else {},
    )


def _fed(
    feed: Sequence[str], locked: psycopg.Cursor[Any] | None, fed: psycopg.Cursor[Any] | None
) -> Released:
    if locked is None or fed is None:
        return Released()
    done, ended = as_released(fed.fetchall())
    ((keys,),) = locked.fetchall()
    rest = set(feed).difference(keys).union(ended)
    if rest:
        done.later[MONITOR] = rest
    return done


def _look(row: tuple[Any, ...] | None, request: ClaimRequest) -> Look:
    assert row is not None, "an aggregate has one row"
    locks, statuses, lanes, queues, priorities, first_ids, held, spent_seconds, *rest = row
    sights = [
        Sight(Status(status), (lane, queue_id, priority), first_id, is_held)
        for status, lane, queue_id, priority, first_id, is_held in zip(
            *(column or () for column in (statuses, lanes, queues, priorities, first_ids, held)),
            strict=True,
        )
    ]
    spent = [sight.place[1] for sight in sights if sight.status is Status.SPENT]
    steps, arrivals, last_arrival, has_controls, entries = rest
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
        entries=entries or 0,
    )


def return_jobs(
    connection: psycopg.Connection[Any],
    worker_id: int,
    claims: Sequence[tuple[int, int]],
    *,
    delay_seconds: float = 0.0,
    errors: Mapping[tuple[int, int], str] = NO_ERRORS,
    max_errors: int = 10,
) -> set[int]:
    """Give claimed jobs (id, claim_seq) back, no attempt counted; return the ids given back.

    `errors`: claim -> JSON text of an error that is kept with its job, at most once in a row.
    """
    claims = sorted(claims)
    params = {
        "worker": worker_id,
        "ids": array(c[0] for c in claims),
        "seqs": array(c[1] for c in claims),
        "delay_seconds": delay_seconds,
        "errors": text_array(errors.get(c) for c in claims),
        "max_errors": max_errors,
    }
    return {row[0] for row in execute_bounded(connection, "return_jobs", params)}


def find_claims(connection: psycopg.Connection[Any], worker_id: int) -> set[tuple[int, int]]:
    """Return the claims (id, claim_seq) that a worker holds by the rows."""
    return {(row[0], row[1]) for row in fetch(connection, "find_claims", {"worker": worker_id})}


def record_runs(
    connection: psycopg.Connection[Any], worker_id: int, runs: Sequence[RunRecord]
) -> set[int]:
    """Write starts, progress and statistics of runs that go on; return the ids written.

    Left out are those whose claim was lost, and those whose rows somebody has locked.
    """
    params = {
        "worker": worker_id,
        "ids": array(r.id for r in runs),
        "seqs": array(r.claim_seq for r in runs),
        "ages": array(r.age_seconds for r in runs),
        "extras": text_array(r.extra for r in runs),
    }
    return {row[0] for row in execute(connection, "record_runs", params)}


def watch_jobs(
    connection: psycopg.Connection[Any], worker_id: int, ids: Sequence[int]
) -> list[Watched]:
    """Return the claims among `ids` that still stand."""
    rows = fetch(connection, "watch_jobs", {"worker": worker_id, "ids": array(ids)})
    return [Watched(*row) for row in rows]


def finish_in_transaction(using: str, worker_id: int, done: Finished, max_errors: int) -> bool:
    """Finish one job inside the Django transaction open on `using`; False: the claim was lost."""
    return bool(fetch(using, "finish_jobs", _finish_params(worker_id, [done], max_errors)))


def exchange_in_transaction(
    using: str,
    worker_id: int,
    *,
    finished: Sequence[Finished] = (),
    failed: Sequence[Failed] = (),
    request: ClaimRequest | None = None,
    max_errors: int = 10,
) -> Exchange:
    """Do what `exchange` does, statement by statement in the Django transaction open on `using`.

    For tests, whose jobs are visible in that transaction alone.
    """
    done: list[tuple[Any, ...]] = []
    again: list[tuple[Any, ...]] = []
    if finished:
        done = fetch(using, "finish_jobs", _finish_params(worker_id, finished, max_errors))
    if failed:
        again = fetch(using, "reschedule_jobs", _reschedule_params(worker_id, failed, max_errors))
    if halts := [halt for end in finished if (halt := end.halt())]:
        fetch(using, "halt_sessions", halt_params(halts))
    jobs: list[ClaimedJob] = []
    look = None
    if request is not None:
        looked = fetch(using, "lock_queues", lock_params(request))
        jobs = [ClaimedJob(*row) for row in fetch(using, "claim_jobs", claim_params(request))]
        jobs.sort(key=lambda job: job.nth_served)
        look = _look(looked[0], request)
    return Exchange({row[0] for row in done}, {row[0] for row in again}, jobs, look)
