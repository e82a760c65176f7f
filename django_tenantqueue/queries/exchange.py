"""One round trip of a worker: store what has ended, and claim what comes next.

It runs on the worker's own connection, in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from ..gates import MONITOR
from .base import LOCK_TIMEOUT, fetch, is_pooled, send_statement
from .claim import ClaimedJob, ClaimRequest, Look, as_look, claim_params, lock_params
from .finish import Failed, Finished, finish_params, reschedule_params
from .gates import Released, halt_params
from .locks import GATE_LOCK_CLASSES, LockClass
from .monitors import as_released
from .survey import Taken, first_taken_params

LINE_SECONDS = 3.0
"""Longest wait for it. A worker that dies in line may claim once more, when its turn comes; rescue
finds jobs of workers that have no row any more, too."""
LINE_TIMEOUT = b"SET LOCAL lock_timeout = %d" % (1000 * LINE_SECONDS)


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
                params = finish_params(worker_id, finished, max_errors)
                done = send_statement(connection, "finish_jobs", params)
            if failed:
                params = reschedule_params(worker_id, failed, max_errors)
                again = send_statement(connection, "reschedule_jobs", params)
            if halts:
                send_statement(connection, "halt_sessions", halt_params(halts))
            if feed:
                params = {"lock_class": GATE_LOCK_CLASSES[MONITOR], "keys": list(feed)}
                locked = send_statement(connection, "try_gates", params)
                params = {"keys": None, "by_tenant": by_tenant}
                fed = send_statement(connection, "release_monitors", params)
            if in_line:
                assert not finished
                assert not failed
                assert not feed
                connection.execute(LINE_TIMEOUT, prepare=prepare)
                params = {"lock_class": LockClass.TURNSTILE}
                send_statement(connection, "wait_at_turnstile", params)
            if request is not None:
                params = lock_params(request)
                looked = send_statement(connection, "lock_queues", params)
                params = claim_params(request)
                claimed = send_statement(connection, "claim_jobs", params)
                if request.by_ids:
                    params = first_taken_params(request.taken)
                    taken = send_statement(connection, "find_first_taken", params)
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
        look=as_look(looked.fetchone(), request) if looked is not None and request else None,
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
        done = fetch(using, "finish_jobs", finish_params(worker_id, finished, max_errors))
    if failed:
        again = fetch(using, "reschedule_jobs", reschedule_params(worker_id, failed, max_errors))
    if halts := [halt for end in finished if (halt := end.halt())]:
        fetch(using, "halt_sessions", halt_params(halts))
    jobs: list[ClaimedJob] = []
    look = None
    if request is not None:
        looked = fetch(using, "lock_queues", lock_params(request))
        jobs = [ClaimedJob(*row) for row in fetch(using, "claim_jobs", claim_params(request))]
        jobs.sort(key=lambda job: job.nth_served)
        look = as_look(looked[0], request)
    return Exchange({row[0] for row in done}, {row[0] for row in again}, jobs, look)
