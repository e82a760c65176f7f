-- Give jobs that an operator brought back their keys again, where those are free or stale. A key of
-- another job that blocks stays with it, and the job runs without one. What blocks: see
-- parts/blocking_keys.sql; why `prior_id` is compared: see insert_unique_jobs.sql.
-- Locks: the keys' rows, in their order; waits for another uncommitted insert of the same key only.
-- Indexes: the primary key of the hot leaf, tenantqueue_uniquekey_pkey.
WITH given AS MATERIALIZED (
    SELECT DISTINCT ON (j.unique_key) j.id, j.unique_key AS key, j.unique_mode
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.unique_key IS NOT NULL
        AND j.unique_mode <> 'until_expired'
    ORDER BY j.unique_key, j.id
),
-- include: blocking_keys
INSERT INTO tenantqueue_uniquekey AS held (key, job_id, prior_id, mode)
SELECT given.key, given.id, existing_job.job_id, given.unique_mode
FROM given
LEFT JOIN existing_job ON existing_job.key = given.key
WHERE existing_job.blocks IS NOT TRUE
ORDER BY given.key
ON CONFLICT (key) DO UPDATE
SET job_id = EXCLUDED.job_id, prior_id = EXCLUDED.prior_id, mode = EXCLUDED.mode,
    expires_at = EXCLUDED.expires_at
WHERE held.job_id = EXCLUDED.prior_id
RETURNING held.job_id
