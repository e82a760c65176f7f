-- Whether this database has the job or the monitor of an id. Locks nothing. Indexes: the primary
-- keys of the hot leaf, of each leaf of the history, and of monitors.
SELECT
    EXISTS (SELECT FROM tenantqueue_job_hot j WHERE j.id = %(id)s::bigint)
    OR EXISTS (SELECT FROM tenantqueue_job_history j WHERE j.id = %(id)s::bigint)
    OR EXISTS (SELECT FROM tenantqueue_concurrentjobmonitor m WHERE m.id = %(id)s::bigint)
