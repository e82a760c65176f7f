-- What runs now: of one worker process, or of all (NULL), at most `most` jobs of each, the longest
-- first; `of_worker` says how many its worker holds in all.
-- Index: tenantqueue_job_slots, read once whole (it holds running jobs only).
WITH claim AS (
    SELECT
        j.id, j.worker_id, j.task, j.queue_id, j.state, j.attempt, j.max_attempts,
        coalesce(j.started_at, j.queued_at) AS since,
        row_number() OVER (
            PARTITION BY j.worker_id ORDER BY coalesce(j.started_at, j.queued_at), j.id
        ) AS nth,
        count(*) OVER (PARTITION BY j.worker_id) AS of_worker
    FROM tenantqueue_job_hot j
    WHERE j.state IN ('queued', 'running')
        AND (%(worker)s::bigint IS NULL OR j.worker_id = %(worker)s::bigint)
)
SELECT
    claim.id, claim.worker_id, claim.task, coalesce(q.tenant, '') AS tenant,
    coalesce(q.name, '') AS queue, claim.state, claim.attempt, claim.max_attempts,
    greatest(extract(epoch FROM clock_timestamp() - claim.since), 0)::float8 AS age_seconds,
    claim.of_worker
FROM claim
LEFT JOIN tenantqueue_tenantqueue q ON q.id = claim.queue_id
WHERE claim.nth <= %(most)s::integer
ORDER BY claim.since, claim.id
