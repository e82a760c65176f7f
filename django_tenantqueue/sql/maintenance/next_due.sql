-- Seconds until the next scheduled job is due; NULL when there is none. Index: tenantqueue_job_due.
SELECT extract(epoch FROM min(j.run_at) - clock_timestamp())::float8 AS seconds
FROM tenantqueue_job_hot j
WHERE j.state = 'scheduled'
