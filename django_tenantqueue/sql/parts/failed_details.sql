-- How many details of monitor `m` have failed, counted up to its limit.
(
    SELECT count(*)
    FROM (
        SELECT
        FROM tenantqueue_job_history j
        WHERE j.monitor_id = m.id AND j.state = 'error' AND j.id <> m.anchor_id
        LIMIT coalesce(m.stop_after_failures, 0)
    ) failure
)
