-- Which tasks may start jobs now.

-- The tasks with a rate: `owed` starts that it has not made up for at `as_of`, and how many
-- `starts` may be made. They are made once there are `batch` of them, which is at most what 50 ms
-- bring: with half of that, fast rates cost twice as many statements; with twice as much, starts
-- come later.
CREATE VIEW tenantqueue_taskstart AS
SELECT
    c.id AS control_id, c.task, c.max_per_second, clock.as_of,
    greatest(1, least(clock.burst / 2, c.max_per_second * 0.05)) AS batch,
    greatest(0, coalesce(past.debt - past.brought, 0)) AS owed,
    clock.burst - greatest(0, coalesce(least(past.debt, clock.burst) - past.brought, 0)) AS starts
FROM tenantqueue_taskcontrol c
CROSS JOIN LATERAL (
    SELECT
        clock_timestamp() AS as_of,
        coalesce(c.burst, greatest(1, ceil(c.max_per_second)))::float8 AS burst
) clock
LEFT JOIN LATERAL (
    SELECT
        rate.debt,
        c.max_per_second
            * greatest(0, extract(epoch FROM clock.as_of - rate.as_of)::float8) AS brought
    FROM tenantqueue_taskrate rate
    -- none after the clock was set back
    WHERE rate.control_id = c.id AND rate.as_of <= clock.as_of + interval '1 second'
) past ON true
WHERE c.max_per_second IS NOT NULL;

-- The tasks that may start no job now: paused, full, or beyond their rate. Claims skip their jobs.
-- The jobs of a task are counted up to its cap. Index: tenantqueue_job_task_inside.
CREATE VIEW tenantqueue_closedtask AS
SELECT c.task
FROM tenantqueue_taskcontrol c
WHERE c.paused OR (
    c.num_slots <= (
        SELECT count(*)
        FROM (
            SELECT
            FROM tenantqueue_job_hot j
            WHERE j.task = c.task AND j.task_at IS NOT NULL AND j.state IN ('queued', 'running')
            LIMIT c.num_slots
        ) taken
    )
)
OR c.max_per_second IS NOT NULL AND EXISTS (
    SELECT
    FROM tenantqueue_taskstart s
    WHERE s.control_id = c.id AND s.starts < s.batch
);
