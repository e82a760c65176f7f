-- Locks the unfinished jobs of queues, in the order of ids as all others do, and counts those that
-- are claimed. A sequential scan on purpose: a move does it once, and no index has all jobs of a
-- queue.
WITH locked AS MATERIALIZED (
    SELECT j.id, j.state
    FROM tenantqueue_job_hot j
    WHERE j.queue_id = ANY (%(queues)s::integer[])
    ORDER BY j.id
    FOR UPDATE
)
SELECT count(*) FILTER (WHERE locked.state IN ('queued', 'running')) FROM locked
