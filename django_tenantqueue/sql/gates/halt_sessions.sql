-- Halt sessions in which a job ended in error or was cancelled, where the session says so, or, if it says
-- nothing, the job. In the transaction of that end: no release can let the next job through between.
-- Locks: the rows of the sessions. Index: the unique one of (gate_key, kind).
UPDATE tenantqueue_session AS session
SET halted_at = clock_timestamp(), halted_by = ended.job_id
FROM unnest(%(keys)s::text[], %(jobs)s::bigint[], %(wanted)s::boolean[])
    AS ended (key, job_id, wanted)
WHERE session.kind = 'serial' AND session.gate_key = ended.key AND session.halted_at IS NULL
    -- not redundant: it keeps a plan made while the table was empty from reading all of it
    AND session.gate_key = ANY (%(keys)s::text[])
    AND CASE WHEN session.on_failure <> '' THEN session.on_failure = 'halt' ELSE ended.wanted END
RETURNING session.id
