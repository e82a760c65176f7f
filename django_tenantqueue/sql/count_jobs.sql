-- Ready, scheduled and running jobs of all queues, each count bounded by `most` (a result of `most`
-- means "that many or more"), and the database's time.
-- Indexes: tenantqueue_job_ready, tenantqueue_job_due, tenantqueue_job_slots.
SELECT
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state = 'created'
            ORDER BY j.lane, j.queue_id
            LIMIT %(most)s::integer
        ) job
    ) AS ready,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state = 'scheduled'
            ORDER BY j.run_at
            LIMIT %(most)s::integer
        ) job
    ) AS scheduled,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.state IN ('queued', 'running')
            LIMIT %(most)s::integer
        ) job
    ) AS running,
    clock_timestamp() AS read_at
