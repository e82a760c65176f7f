-- The `startable` jobs of all queues, and for how long the first of them has waited.
of_queue AS (
    -- a queue with jobs in several lanes has its free slots once
    SELECT least(count(*), max(startable.room)) AS jobs, max(startable.waits) AS waits
    FROM startable
    GROUP BY startable.queue_id
), total AS (
    SELECT coalesce(sum(of_queue.jobs), 0)::integer AS jobs, max(of_queue.waits) AS waits
    FROM of_queue
)
