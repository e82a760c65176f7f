-- Make jobs due now that wait because no worker had their task, which is now one of `names`. They
-- are due within `seconds` anyway. It reads the `most` scheduled jobs that are due first.
-- Locks: the job rows, SKIP LOCKED. Indexes: tenantqueue_job_due, primary key.
WITH soon AS MATERIALIZED (
    SELECT j.id, j.task, j.errors -> -1 ->> 'class' AS class
    FROM tenantqueue_job_hot j
    WHERE j.state = 'scheduled'
        AND j.run_at <= statement_timestamp() + make_interval(secs => %(seconds)s::float8)
    ORDER BY j.run_at
    LIMIT %(most)s::integer
), hurried AS MATERIALIZED (
    SELECT j.id
    FROM tenantqueue_job_hot j
    WHERE j.state = 'scheduled'
        AND j.id = ANY (
            ARRAY(
                SELECT soon.id
                FROM soon
                WHERE soon.class = %(error_class)s::text AND soon.task = ANY (%(names)s::text[])
            )
        )
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tenantqueue_job_hot AS job
SET run_at = statement_timestamp()
WHERE job.id = ANY (ARRAY(SELECT hurried.id FROM hurried))
RETURNING job.id
