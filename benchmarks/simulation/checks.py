"""What must hold after a run. Each check raises Incorrect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import psycopg

from ..measure import most_by_key
from ..results import Incorrect
from .messages import Run
from .series import Series


def check_jobs(
    db: psycopg.Connection, enqueued: Collection[int], blocked: Collection[int], orphaned: set[int]
) -> dict[str, int]:
    """Check that each job has succeeded once, but for those that a limit blocks to the end.

    `orphaned`: jobs that killed workers held. Only they may have lost an attempt.
    """
    left: dict[int, str] = dict(db.execute("SELECT id, state FROM tenantqueue_job_hot").fetchall())
    ended = db.execute("SELECT id, state, attempt FROM tenantqueue_job_history").fetchall()
    ids = [row[0] for row in ended]
    if len(ids) != len(set(ids)):
        raise Incorrect(f"{len(ids) - len(set(ids))} jobs have ended twice")
    if set(left) != set(blocked) or set(left.values()) - {"ready"}:
        raise Incorrect(
            f"{len(left)} jobs are left, and {len(blocked)} are blocked: {Counter(left.values())}"
        )
    if lost := set(enqueued) - set(left) - set(ids):
        raise Incorrect(f"{len(lost)} jobs are lost, for example {min(lost)}")
    if strange := set(ids) - set(enqueued):
        raise Incorrect(f"{len(strange)} jobs have ended that nobody enqueued")
    if failed := [row for row in ended if row[1] != "success"]:
        raise Incorrect(f"{len(failed)} jobs have not succeeded, for example {failed[0]}")
    again = {row[0] for row in ended if row[2] > 1}
    if unjust := again - orphaned:
        raise Incorrect(f"{len(unjust)} jobs lost an attempt though no worker died under them")
    return {"jobs": len(enqueued), "ended": len(ids), "left": len(left), "rescued": len(again)}


def check_runs(runs: Sequence[Run], ended: int) -> None:
    """Check that no job ran twice, but for runs that were killed."""
    whole = Counter(run.job_id for run in runs if not run.is_killed)
    if twice := [job for job, count in whole.items() if count > 1]:
        raise Incorrect(f"{len(twice)} jobs ran to their end twice, for example {twice[0]}")
    if len(whole) != ended:
        raise Incorrect(f"{ended} jobs have ended, and {len(whole)} ran to their end")
    if most := [job for job, most in most_by_key(_by(runs, "job_id")).items() if most > 1]:
        raise Incorrect(f"{len(most)} jobs ran in two places at once, for example {most[0]}")


def check_slots(db: psycopg.Connection, runs: Sequence[Run]) -> dict[str, int]:
    """Check by the runs, and by the rows, that no queue had more jobs at once than slots."""
    limits: dict[object, int] = dict(
        db.execute(
            "SELECT id, num_slots FROM tenantqueue_tenantqueue WHERE num_slots IS NOT NULL"
        ).fetchall()
    )
    rows = db.execute(
        "SELECT queue_id, extract(epoch FROM queued_at)::float8, "
        "extract(epoch FROM finished_at)::float8 FROM tenantqueue_job_history"
    ).fetchall()
    full: set[object] = set()
    for what, found in (("runs", _by(runs, "queue_id")), ("rows", rows)):
        for queue, most in most_by_key(found).items():
            limit = limits.get(queue)
            if limit is not None and most > limit:
                raise Incorrect(f"queue {queue} has {limit} slots and had {most} jobs ({what})")
            if most == limit:
                full.add(queue)
    return {"full_queues": len(full)}


def _by(runs: Sequence[Run], name: str) -> list[tuple[int, float, float]]:
    return [(getattr(run, name), run.start, run.end) for run in runs]


def check_curves(series: Series) -> None:
    """Check that the fleet grew, worked the backlog off, shrank, and ignored blocked jobs."""
    least = series.plan["least_pods"]
    (evening,), (limited,), (end,) = map(series.seconds_of, ("evening", "limited", "end"))
    if max(series.between("pods", 0, evening)) <= least:
        raise Incorrect("the fleet did not grow")
    if series.between("pods", 0, limited)[-1] != least:
        raise Incorrect(f"the fleet has not shrunk to {least} pods when the day was worked off")
    pods = series.between("pods", limited, end)
    blocked = series.between("blocked", limited, end)
    if max(pods) > least:
        raise Incorrect(f"{max(pods):.0f} pods were there while all waiting jobs were blocked")
    if not max(blocked) > series.facts["backlog"]:
        raise Incorrect("no additional job was blocked in the phase that is about those")
