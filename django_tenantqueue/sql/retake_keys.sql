-- Give jobs that an operator brought back their keys again, where those are free; a key that belongs to
-- another job that blocks stays there, and the job runs without it.
-- Locks: the keys' rows, in their order; waits for another uncommitted insert of the same key only.
-- Indexes: the primary key of the hot leaf, tenantqueue_uniquekey_pkey.
WITH back AS MATERIALIZED (
    SELECT j.id, j.unique_key, j.unique_mode
    FROM tenantqueue_job_hot j
    WHERE j.id = ANY (%(ids)s::bigint[]) AND j.unique_key IS NOT NULL
        AND j.unique_mode <> 'until_expired'
)
INSERT INTO tenantqueue_uniquekey AS held (key, job_id, mode)
SELECT DISTINCT ON (back.unique_key) back.unique_key, back.id, back.unique_mode
FROM back
ORDER BY back.unique_key, back.id
ON CONFLICT (key) DO NOTHING
RETURNING held.job_id
