-- The job that has each of the `given` keys, and whether that blocks: while the key's time lasts
-- and, by the row of the job in the same snapshot, for what the key's mode asks. `passed_over`:
-- jobs that block no more, whatever their rows say.
existing_job AS MATERIALIZED (
    SELECT
        given.key, held.job_id, job.state,
        (held.expires_at IS NULL OR held.expires_at > statement_timestamp())
        AND held.job_id <> ALL (%(passed_over)s::bigint[])
        AND CASE held.mode
            WHEN 'until_expired' THEN true
            WHEN 'until_executed' THEN job.state IS NOT NULL
            ELSE coalesce(job.state IN ('scheduled', 'held', 'ready'), false)
        END AS blocks,
        held.mode IN ('until_executing', 'until_and_while_executing') AS ends_at_start
    FROM given
    CROSS JOIN LATERAL (
        SELECT k.job_id, k.mode, k.expires_at
        FROM tenantqueue_uniquekey k
        WHERE k.key = given.key
        OFFSET 0
    ) held
    LEFT JOIN LATERAL (
        SELECT j.state
        FROM tenantqueue_job_hot j
        WHERE j.id = held.job_id
        OFFSET 0
    ) job ON true
)
