-- Give jobs that an operator brought back their keys again, where those are free or stale; a key that
-- belongs to another job that blocks stays there, and the job runs without it. What blocks, and why
-- `prior_id` is compared: see insert_unique_jobs.sql.
-- Locks: the keys' rows, in their order; waits for another uncommitted insert of the same key only.
-- Indexes: the primary key of the hot leaf, tenantqueue_uniquekey_pkey.
WITH back AS MATERIALIZED (
    SELECT DISTINCT ON (j.unique_key) j.id, j.unique_key, j.unique_mode
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.unique_key IS NOT NULL
        AND j.unique_mode <> 'until_expired'
    ORDER BY j.unique_key, j.id
), wanted AS MATERIALIZED (
    SELECT back.id, back.unique_key, back.unique_mode, existing_job.job_id AS prior_id
    FROM back
    LEFT JOIN LATERAL (
        SELECT
            held.job_id,
            (held.expires_at IS NULL OR held.expires_at > statement_timestamp())
            AND CASE held.mode
                WHEN 'until_expired' THEN true
                WHEN 'until_executed' THEN job.state IS NOT NULL
                ELSE coalesce(job.state IN ('scheduled', 'held', 'created'), false)
            END AS blocks
        FROM (
            SELECT k.job_id, k.mode, k.expires_at
            FROM tenantqueue_uniquekey k
            WHERE k.key = back.unique_key
            OFFSET 0
        ) held
        LEFT JOIN LATERAL (
            SELECT j.state
            FROM tenantqueue_job_hot j
            WHERE j.id = held.job_id
            OFFSET 0
        ) job ON true
    ) existing_job ON true
    WHERE existing_job.blocks IS NOT TRUE
)
INSERT INTO tenantqueue_uniquekey AS held (key, job_id, prior_id, mode)
SELECT wanted.unique_key, wanted.id, wanted.prior_id, wanted.unique_mode
FROM wanted
ORDER BY wanted.unique_key
ON CONFLICT (key) DO UPDATE
SET job_id = EXCLUDED.job_id, prior_id = EXCLUDED.prior_id, mode = EXCLUDED.mode,
    expires_at = EXCLUDED.expires_at
WHERE held.job_id = EXCLUDED.prior_id
RETURNING held.job_id
