"""One round trip of a worker: store the ends of jobs, and claim the next ones.

It runs on the worker's own connection, in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from ..gate_keys import MONITOR
from .base import LOCK_TIMEOUT, fetch, is_pooled, send_statement
from .claim import ClaimedJob, ClaimRequest, Look, as_look, claim_params, lock_params
from .finish import Failed, Finished, finish_params, reschedule_params
from .follow_ups import FollowUp, read_follow_ups
from .gates import Released
from .locks import GATE_LOCK_CLASSES, LockKey
from .monitors import as_released
from .session_halt import halt_params
from .survey import Taken, first_taken_params

TURNSTILE_SECONDS = 3.0
"""Longest wait at the turnstile. A worker that died there may claim once when its turn comes."""
TURNSTILE_TIMEOUT = b"SET LOCAL lock_timeout = %d" % (1000 * TURNSTILE_SECONDS)

Statements = list[tuple[str, dict[str, Any]]]
"""Names of statements and their parameters, in the order in which they run."""


@dataclass(slots=True)
class Exchange:
    """The answer to one round trip."""

    finished: set[int]
    rescheduled: set[int]
    jobs: list[ClaimedJob]
    look: Look | None
    fed: Released = field(default_factory=Released)
    """Jobs that monitors released; its `later` names gates that must still be released."""
    follow_ups: list[FollowUp] = field(default_factory=list)
    """Jobs that the ends of others enqueued."""
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
    at_turnstile: bool = False,
    feed: Sequence[str] = (),
    by_tenant: bool = False,
) -> Exchange:
    """Store the ends of jobs and claim by `request`, in one transaction and one round trip.

    `feed`: monitors that are fed between the two. Those that another session is feeding are
    returned, to be fed in a separate transaction. `by_tenant`: see release_monitors.

    `at_turnstile`: wait for a turn to claim. Nothing may be stored with it, because its rows would
    stay locked during the wait. Raises psycopg.errors.LockNotAvailable when that takes longer than
    TURNSTILE_SECONDS.

    `finished` and `failed` must be sorted by id (the order in which rows are locked). An error
    undoes everything of the call; the connection is usable again afterwards.
    """
    statements = _statements(worker_id, finished, failed, request, max_errors)
    if feed:
        at = len(statements) - (0 if request is None else 2 + request.by_ids)
        statements[at:at] = [
            ("try_gates", {"lock_class": GATE_LOCK_CLASSES[MONITOR], "keys": list(feed)}),
            ("release_monitors", {"keys": None, "by_tenant": by_tenant}),
        ]
    prepare = connection.prepare_threshold is not None
    # the server takes a pipeline for one transaction, in the isolation level of the session: see
    # "Pipelining" in its documentation of the extended query protocol
    is_explicit = at_turnstile or is_pooled(connection)
    try:
        with connection.pipeline():
            if is_explicit:
                connection.execute(b"BEGIN ISOLATION LEVEL READ COMMITTED", prepare=prepare)
            if is_pooled(connection):
                connection.execute(LOCK_TIMEOUT, prepare=prepare)
            if at_turnstile:
                assert not finished
                assert not failed
                assert not feed
                connection.execute(TURNSTILE_TIMEOUT, prepare=prepare)
                params = {"key": LockKey.TURNSTILE}
                send_statement(connection, "wait_at_turnstile", params)
            sent = {name: send_statement(connection, name, params) for name, params in statements}
            if is_explicit:
                connection.execute(b"COMMIT", prepare=prepare)
    except psycopg.Error:
        if not connection.broken:
            connection.rollback()
        raise
    answers = {name: cursor.fetchall() for name, cursor in sent.items()}
    answer = _as_exchange(answers, request)
    if feed:
        answer.fed = _as_fed(feed, answers)
    return answer


def exchange_in_transaction(
    using: str,
    worker_id: int,
    *,
    finished: Sequence[Finished] = (),
    failed: Sequence[Failed] = (),
    request: ClaimRequest | None = None,
    max_errors: int = 10,
) -> Exchange:
    """Do what exchange() does, statement by statement in the Django transaction open on `using`.

    For tests, whose jobs are visible in that transaction alone.
    """
    statements = _statements(worker_id, finished, failed, request, max_errors)
    answers = {name: fetch(using, name, params) for name, params in statements}
    return _as_exchange(answers, request)


def _statements(
    worker_id: int,
    finished: Sequence[Finished],
    failed: Sequence[Failed],
    request: ClaimRequest | None,
    max_errors: int,
) -> Statements:
    statements: Statements = []
    if finished:
        statements.append(("finish_jobs", finish_params(worker_id, finished, max_errors)))
    if failed:
        statements.append(("reschedule_jobs", reschedule_params(worker_id, failed, max_errors)))
    if halts := halt_params((done.id, done.state, done.gates) for done in finished):
        statements.append(("halt_sessions", halts))
    if request is not None:
        statements.append(("lock_queues", lock_params(request)))
        statements.append(("claim_jobs", claim_params(request)))
        if request.by_ids:
            statements.append(("find_first_taken", first_taken_params(request.taken)))
    return statements


def _as_exchange(
    answers: Mapping[str, list[tuple[Any, ...]]], request: ClaimRequest | None
) -> Exchange:
    jobs = list(map(ClaimedJob._make, answers.get("claim_jobs", ())))
    jobs.sort(key=lambda job: job.nth_served)
    return Exchange(
        finished={row[0] for row in answers.get("finish_jobs", ())},
        rescheduled={row[0] for row in answers.get("reschedule_jobs", ())},
        jobs=jobs,
        look=None if request is None else as_look(answers["lock_queues"][0], request),
        follow_ups=read_follow_ups(row[1] for row in answers.get("finish_jobs", ())),
        taken={row[0]: Taken(row[1], row[2]) for row in answers.get("find_first_taken", ())},
    )


def _as_fed(feed: Sequence[str], answers: Mapping[str, list[tuple[Any, ...]]]) -> Released:
    done, ended = as_released(answers["release_monitors"])
    ((locked,),) = answers["try_gates"]
    if left := set(feed).difference(locked).union(ended):
        done.later[MONITOR] = left
    return done
