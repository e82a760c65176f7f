-- Halt sessions in which a job ended in error or was cancelled. Runs in the transaction of that
-- end: no release can let the next job through in between.
-- Locks: the rows of the sessions, by key. Index: the unique one of (gate_key, kind).
WITH ended AS MATERIALIZED (
    SELECT given.key, given.job_id, given.wanted
    FROM unnest(%(keys)s::text[], %(jobs)s::bigint[], %(wanted)s::boolean[])
        AS given (key, job_id, wanted)
),
-- include: session_halt
SELECT halted.id
FROM halted
