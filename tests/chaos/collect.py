"""Reads the evidence out of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.intervals import Limits

from .evidence import Evidence, JobRow, Life, Run
from .link import Link

ENQUEUED = "SELECT job_id, kind FROM chaos_job"
ROWS = """
    SELECT
        j.id, coalesce(c.kind, '?'), j.queue_id, j.state, j.attempt, j.max_attempts, j.claim_seq,
        j.queued_at, j.finished_at,
        (
            SELECT coalesce(array_agg(e.value ->> 'class' ORDER BY e.ordinality), '{}')
            FROM jsonb_array_elements(j.errors) WITH ORDINALITY AS e
        )
    FROM tenantqueue_job j
    LEFT JOIN chaos_job c ON c.job_id = j.id
"""
RUNS = """
    SELECT b.job_id, b.claim_seq, b.process, b.claimed_at, b.at, e.at
    FROM chaos_mark b
    LEFT JOIN chaos_mark e ON e.run = b.run AND e.ends
    WHERE NOT b.ends
"""
EFFECTS = "SELECT job_id, count(*) FROM chaos_effect GROUP BY job_id"
WORKERS = "SELECT count(*) FROM tenantqueue_worker"
WAITING = """
    SELECT count(*)
    FROM tenantqueue_job_hot j
    LEFT JOIN chaos_job c ON c.job_id = j.id
    WHERE %s OR c.kind IS DISTINCT FROM 'poison'
"""
SUPERVISORS = "SELECT DISTINCT supervisor_pid FROM tenantqueue_worker"
SLOTS = "SELECT id, num_slots FROM tenantqueue_tenantqueue"


def count_unfinished(link: Link, *, poison: bool) -> int:
    """Return how many jobs have not ended, with or without those that were made to fail."""
    return int(link.insist(WAITING, [poison])[0][0])


def are_signed_on(link: Link, living: list[int], supervisors: int) -> bool:
    """Whether so many supervisors live, and each of them, and nobody else, has workers."""
    listed = {pid for (pid,) in link.insist(SUPERVISORS)}
    return len(living) == supervisors and listed == set(living)


def collect(
    link: Link,
    *,
    lives: Mapping[str, Life],
    limits: Mapping[int, Limits],
    exit_codes: Sequence[int],
    failures: Sequence[str],
) -> Evidence:
    """Read what the database has to say, and add what only the run knows."""
    return Evidence(
        enqueued=dict(link.insist(ENQUEUED)),
        rows=[JobRow(*row[:-1], errors=tuple(row[-1])) for row in link.insist(ROWS)],
        runs=[Run(*row) for row in link.insist(RUNS)],
        lives=lives,
        effects=dict(link.insist(EFFECTS)),
        limits=limits,
        workers_left=link.insist(WORKERS)[0][0],
        exit_codes=exit_codes,
        failures=failures,
    )
