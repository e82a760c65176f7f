-- The newest `most` jobs of each of some model instances, unfinished and finished. `types` are the
-- values of source_type that the instances have, `ids` their primary keys as text.
-- Indexes: tenantqueue_job_source, and tenantqueue_history_source of each leaf, merged, once for
-- each type and instance. The conditions are those of list_jobs_of_owner.sql.
SELECT
    job.id, job.source_id, job.task, job.state, job.created_at, job.started_at, job.finished_at
FROM unnest(%(types)s::text[]) AS kind (name)
CROSS JOIN unnest(%(ids)s::text[]) AS instance (id)
CROSS JOIN LATERAL (
    SELECT j.id, j.source_id, j.task, j.state, j.created_at, j.started_at, j.finished_at
    FROM tenantqueue_job j
    WHERE j.source_id <> ''
        AND (j.source_type, j.source_id) >= (kind.name, instance.id)
        AND (j.source_type, j.source_id) <= (kind.name, instance.id)
    ORDER BY j.source_type DESC, j.source_id DESC, j.id DESC
    LIMIT %(most)s
) job
ORDER BY job.id DESC
