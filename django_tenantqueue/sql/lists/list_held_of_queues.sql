-- Held jobs of some queues by the gates that hold them: how long the first one has waited, and
-- their number, up to `most`. Callbacks that wait for the details of their monitors are left out.
-- Locks: none.
-- Indexes: tenantqueue_job_held, one probe for each queue and gate, and the primary key of the
-- queues.
SELECT
    line.queue_id, queue.tenant, queue.name, line.held_by, first.key, first.waits, held.jobs
FROM (
    SELECT wanted.id AS queue_id, gate.name AS held_by
    FROM unnest(%(ids)s::integer[]) AS wanted (id)
    CROSS JOIN unnest(ARRAY['monitor', 'session', 'limit_user', 'exclusive', 'task']) AS gate (name)
) line
-- include: first_held
ORDER BY first.waits DESC, line.queue_id, line.held_by
