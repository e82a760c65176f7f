"""Statements that end runs, return jobs, and report runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg

from ..states import State
from .base import array, execute, execute_bounded, fetch, text_array
from .follow_ups import FollowUp, read_follow_ups

NO_ERRORS: Mapping[tuple[int, int], str] = {}


class Finished(NamedTuple):
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


class Failed(NamedTuple):
    """A run that failed; it is retried after `delay_seconds`, unless its job was cancelled."""

    id: int
    claim_seq: int
    delay_seconds: float
    extra: str
    gates: str | None = None

    def as_cancelled(self) -> Finished:
        """Return the end of the job in place of another attempt."""
        state = State.CANCELLED.value
        return Finished(self.id, self.claim_seq, state, None, extra=self.extra, gates=self.gates)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The state of a running job."""

    id: int
    claim_seq: int
    age_seconds: float
    extra: str | None


@dataclass(frozen=True, slots=True)
class Watched:
    """A valid claim."""

    id: int
    claim_seq: int
    cancel: bool
    paused: bool


def finish_params(worker_id: int, done: Sequence[Finished], max_errors: int) -> dict[str, Any]:
    """Return the parameters of finish_jobs.sql."""
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


def reschedule_params(worker_id: int, failed: Sequence[Failed], max_errors: int) -> dict[str, Any]:
    """Return the parameters of reschedule_jobs.sql."""
    return {
        "worker": worker_id,
        "max_errors": max_errors,
        "ids": array(f.id for f in failed),
        "seqs": array(f.claim_seq for f in failed),
        "delays": array(f.delay_seconds for f in failed),
        "extras": text_array(f.extra for f in failed),
    }


def return_jobs(
    connection: psycopg.Connection[Any],
    worker_id: int,
    claims: Sequence[tuple[int, int]],
    *,
    delay_seconds: float = 0.0,
    errors: Mapping[tuple[int, int], str] = NO_ERRORS,
    max_errors: int = 10,
    ending_class: str = "",
    most_seconds: float = 0.0,
) -> set[int]:
    """Return claimed jobs (id, claim_seq) to their queues without an attempt; return their ids.

    Lost and cancelled ones are left out. `errors`: claim -> JSON text of an error that is kept with
    its job, at most once in a row. A job whose error of `ending_class` is older than `most_seconds`
    is left out, too.
    """
    claims = sorted(dict(sorted(claims)).items())  # of one job the latest claim alone can stand
    params = {
        "worker": worker_id,
        "ids": array(c[0] for c in claims),
        "seqs": array(c[1] for c in claims),
        "delay_seconds": delay_seconds,
        "errors": text_array(errors.get(c) for c in claims),
        "max_errors": max_errors,
        "ending_class": ending_class,
        "most_seconds": most_seconds,
    }
    return {row[0] for row in execute_bounded(connection, "return_jobs", params)}


def find_claims(connection: psycopg.Connection[Any], worker_id: int) -> set[tuple[int, int]]:
    """Return the claims (id, claim_seq) that a worker holds by the rows."""
    return {(row[0], row[1]) for row in fetch(connection, "find_claims", {"worker": worker_id})}


def record_runs(
    connection: psycopg.Connection[Any], worker_id: int, runs: Sequence[RunRecord]
) -> set[int]:
    """Write starts, progress and statistics of running jobs; return the ids written.

    Jobs whose claim was lost and jobs whose rows are locked are left out.
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
    """Return the valid claims among `ids`."""
    rows = fetch(connection, "watch_jobs", {"worker": worker_id, "ids": array(ids)})
    return [Watched(*row) for row in rows]


def finish_in_transaction(
    using: str, worker_id: int, done: Finished, max_errors: int
) -> list[FollowUp] | None:
    """Finish one job inside the Django transaction open on `using`.

    Return the jobs that its end enqueued; None: the claim was lost.
    """
    rows = fetch(using, "finish_jobs", finish_params(worker_id, [done], max_errors))
    return read_follow_ups(row[1] for row in rows) if rows else None
