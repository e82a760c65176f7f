-- The lowest id of a job that was created at `moment` or later; no row when there is none. Ids rise
-- with the time of creation: the range of ids is halved until it is empty.
-- Index: the primary key of each leaf, merged, once for each of some 30 steps.
WITH RECURSIVE step AS (
    SELECT 0::bigint AS low, coalesce(max(j.id) + 1, 0) AS high, 0 AS nth
    FROM tenantqueue_job j
    UNION ALL
    SELECT
        CASE WHEN probe.id IS NULL OR probe.is_later THEN step.low ELSE probe.id + 1 END,
        CASE WHEN probe.id IS NULL OR probe.is_later THEN middle.id ELSE step.high END,
        step.nth + 1
    FROM step
    CROSS JOIN LATERAL (SELECT step.low + (step.high - step.low) / 2 AS id) middle
    LEFT JOIN LATERAL (
        SELECT j.id, j.created_at >= %(moment)s::timestamptz AS is_later
        FROM tenantqueue_job j
        WHERE j.id >= middle.id
        ORDER BY j.id
        LIMIT 1
    ) probe ON true
    WHERE step.low < step.high
)
SELECT found.id
FROM (SELECT step.low FROM step ORDER BY step.nth DESC LIMIT 1) last
CROSS JOIN LATERAL (
    SELECT j.id FROM tenantqueue_job j WHERE j.id >= last.low ORDER BY j.id LIMIT 1
) found
