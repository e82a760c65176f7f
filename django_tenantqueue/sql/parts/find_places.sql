-- Places with ready jobs: the known ones, and those of the steps if these see all places there are.
-- `arrival`: the latest jobs, whose places are returned to the worker.
-- include: steps
, arrival AS MATERIALIZED (
    -- without a condition on the state, which might make the planner choose another index
    SELECT j.id, j.state, j.lane, j.queue_id, j.priority
    FROM tenantqueue_job_hot j
    WHERE j.id > (
        SELECT greatest(%(arrivals_after)s::bigint, began.last_id - %(most_arrivals)s::integer)
        FROM began
    )
    ORDER BY j.id
    LIMIT %(most_arrivals)s::integer
), place AS MATERIALIZED (
    SELECT
        found.lane, found.queue_id, found.priority, min(found.least_id) AS least_id,
        max(found.first_id) AS first_id
    FROM (
        SELECT known.lane, known.queue_id, known.priority, known.least_id, NULL::bigint AS first_id
        FROM unnest(
            %(known_lanes)s::smallint[], %(known_queues)s::integer[],
            %(known_priorities)s::smallint[], %(known_ids)s::bigint[]
        ) AS known (lane, queue_id, priority, least_id)
        UNION ALL
        -- if the steps do not see all places, these are served by later claims, in their order
        SELECT step.lane, step.queue_id, step.priority, step.id, step.id
        FROM step
        WHERE step.nth > 0 AND %(is_first)s::boolean
            AND (SELECT count(*) FROM step) <= %(most_steps)s::integer
            AND step.queue_id <> ALL (%(skip_queues)s::integer[])
    ) found
    GROUP BY found.lane, found.queue_id, found.priority
    ORDER BY
        found.lane,
        found.queue_id <= coalesce(
            (%(starts)s::integer[])[array_position(%(lanes)s::smallint[], found.lane)],
            %(first_start)s::integer
        ),
        found.queue_id, found.priority
)
