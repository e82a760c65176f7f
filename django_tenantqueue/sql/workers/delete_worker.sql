-- Sign a worker process off. One that still holds jobs keeps its row: rescue needs it.
DELETE FROM tenantqueue_worker AS w
WHERE w.id = %(worker)s
    AND NOT EXISTS (
        SELECT
        FROM tenantqueue_job_hot j
        WHERE j.worker_id = w.id AND j.state IN ('queued', 'running')
    )
RETURNING w.id
