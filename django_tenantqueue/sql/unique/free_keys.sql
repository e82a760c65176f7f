-- Let go of the keys of jobs that have ended, after the commit of their ends. What a crash or a
-- lock keeps from this does not block (see insert_unique_jobs.sql) and is pruned later.
-- A key that outlives its job stays, and so does that of a job which an operator has brought back.
-- Locks: the keys' rows, SKIP LOCKED. Indexes: tenantqueue_uniquekey_pkey, the primary key of the
-- hot leaf.
WITH ended AS MATERIALIZED (
    SELECT DISTINCT e.key, e.job_id
    FROM unnest(%(keys)s::text[], %(ids)s::bigint[]) AS e (key, job_id)
), freed AS MATERIALIZED (
    SELECT held.key
    FROM ended
    CROSS JOIN LATERAL (
        SELECT k.key
        FROM tenantqueue_uniquekey k
        WHERE k.key = ended.key AND k.job_id = ended.job_id AND k.mode <> 'until_expired'
        FOR UPDATE SKIP LOCKED
    ) held
    WHERE NOT EXISTS (
        SELECT
        FROM (SELECT FROM tenantqueue_job_hot j WHERE j.id = ended.job_id OFFSET 0) unfinished
    )
)
DELETE FROM tenantqueue_uniquekey AS held
WHERE held.key = ANY (ARRAY(SELECT f.key FROM freed f))
