-- Group the newest failed details of a monitor, at most `most`, by task and class of their last
-- error: how often, and the newest of each with its message. The largest groups come first, at most
-- `groups`. `looked_at`: how many were read.
-- Locks: none. Index: tenantqueue_history_monitor of each leaf, merged, from the newest entry
-- backwards, and the rows.
-- The conditions compare rows: see list_ended_details.sql.
WITH failed AS MATERIALIZED (
    SELECT j.id, j.task, j.errors -> -1 ->> 'class' AS error, j.finished_at
    FROM tenantqueue_job_history j
    WHERE j.monitor_id >= %(monitor_id)s::bigint
        AND (j.monitor_id, j.state) >= (%(monitor_id)s::bigint, 'error')
        AND (j.monitor_id, j.state) <= (%(monitor_id)s::bigint, 'error')
    ORDER BY j.monitor_id DESC, j.state DESC, j.finished_at DESC, j.id DESC
    LIMIT %(most)s::integer
), kind AS (
    SELECT
        f.task, f.error, count(*) AS details, max(f.finished_at) AS last_at,
        (array_agg(f.id ORDER BY f.finished_at DESC, f.id DESC))[1] AS example_id,
        sum(count(*)) OVER () AS looked_at
    FROM failed f
    WHERE f.id <> (
        SELECT m.anchor_id
        FROM tenantqueue_concurrentjobmonitor m
        WHERE m.id = %(monitor_id)s::bigint
    )
    GROUP BY f.task, f.error
    ORDER BY details DESC, last_at DESC
    LIMIT %(groups)s::integer
)
SELECT
    kind.task, coalesce(kind.error, ''), kind.details, kind.last_at, kind.example_id,
    left(coalesce(example.message, ''), 500), kind.looked_at
FROM kind
LEFT JOIN LATERAL (
    SELECT j.errors -> -1 ->> 'message' AS message
    FROM tenantqueue_job_history j
    WHERE j.id = kind.example_id AND j.finished_at = kind.last_at
) example ON true
ORDER BY kind.details DESC, kind.last_at DESC
