-- The lanes that have ready jobs, one probe of tenantqueue_job_ready for each.
level AS (
    (
        SELECT j.lane
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready'
        ORDER BY j.lane
        LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT j.lane
        FROM tenantqueue_job_hot j
        WHERE j.state = 'ready' AND j.lane > level.lane
        ORDER BY j.lane
        LIMIT 1
    )
    FROM level
    WHERE level.lane IS NOT NULL
)
