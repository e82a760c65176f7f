-- Held jobs, by queues and gates: of each gate the `listed` queues whose first job waits longest,
-- with their jobs, counted up to `most`. Callbacks that wait for the details of their monitors are
-- left out. Pairs of a queue and a gate are read in order, up to `visits` of them. Each is one
-- probe, however many jobs are held. Locks: none.
-- Indexes: tenantqueue_job_held, and the primary key of the queues.
WITH RECURSIVE visit AS (
    (
        SELECT j.queue_id, j.held_by, j.run_at, j.created_at, 1 AS step
        FROM tenantqueue_job_hot j
        WHERE j.held_by IS NOT NULL
        ORDER BY j.queue_id, j.held_by, j.run_at
        LIMIT 1
    )
    UNION ALL
    SELECT next.queue_id, next.held_by, next.run_at, next.created_at, visit.step + 1
    FROM visit
    CROSS JOIN LATERAL (
        SELECT j.queue_id, j.held_by, j.run_at, j.created_at
        FROM tenantqueue_job_hot j
        WHERE j.held_by IS NOT NULL AND (j.queue_id, j.held_by) > (visit.queue_id, visit.held_by)
        ORDER BY j.queue_id, j.held_by, j.run_at
        LIMIT 1
    ) next
    WHERE visit.step < %(visits)s::integer
), placed AS (
    SELECT
        visit.queue_id, visit.held_by,
        row_number() OVER (
            PARTITION BY visit.held_by
            ORDER BY greatest(visit.created_at, visit.run_at), visit.queue_id
        ) AS place
    FROM visit
    WHERE visit.held_by <> 'details'
)
SELECT
    line.queue_id, queue.tenant, queue.name, line.held_by, first.key, first.waits, held.jobs
FROM (
    SELECT placed.queue_id, placed.held_by
    FROM placed
    WHERE placed.place <= %(listed)s::integer
    OFFSET 0
) line
-- include: first_held
ORDER BY first.waits DESC, line.queue_id, line.held_by
