-- Seconds until the next schedule is due; NULL when there is none. Index: tenantqueue_schedule_due.
SELECT extract(epoch FROM min(s.next_at) - clock_timestamp())::float8 AS seconds
FROM tenantqueue_schedule s
WHERE s.enabled AND s.next_at IS NOT NULL
