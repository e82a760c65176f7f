-- Walk over up to `most` keys from `after` on and delete those whose job has ended or is gone: what
-- a crash left, and jobs that ended without a worker (cancelled, ended by a rescue).
-- They do not block meanwhile.
-- Returned are the last key of the walk, how many it has seen, and how many were deleted.
-- The job of the row is compared once more under the lock: an enqueue may have taken the key over.
-- Locks: the rows to delete, SKIP LOCKED. Indexes: tenantqueue_uniquekey_pkey, the primary key of
-- the hot leaf.
WITH seen AS MATERIALIZED (
    SELECT k.key, k.job_id, k.mode
    FROM tenantqueue_uniquekey k
    WHERE k.key > %(after)s::text
    ORDER BY k.key
    LIMIT %(most)s::integer
), stale AS MATERIALIZED (
    SELECT held.key
    FROM (
        SELECT seen.key, seen.job_id
        FROM seen
        LEFT JOIN LATERAL (
            SELECT j.id
            FROM tenantqueue_job_hot j
            WHERE j.id = seen.job_id
            OFFSET 0
        ) unfinished ON true
        WHERE seen.mode <> 'until_expired' AND unfinished.id IS NULL
        OFFSET 0
    ) found
    CROSS JOIN LATERAL (
        SELECT k.key
        FROM tenantqueue_uniquekey k
        WHERE k.key = found.key AND k.job_id = found.job_id
        FOR UPDATE SKIP LOCKED
    ) held
), pruned AS (
    DELETE FROM tenantqueue_uniquekey AS held
    WHERE held.key = ANY (ARRAY(SELECT s.key FROM stale s))
    RETURNING held.key
)
SELECT max(seen.key), count(*), (SELECT count(*) FROM pruned)
FROM seen
