-- Lets new jobs have ids above `next`, unless they are above `last` already. Locks nothing.
-- Index: none.
SELECT setval('tenantqueue_job_id_seq', %(next)s::bigint)
WHERE coalesce(pg_sequence_last_value('tenantqueue_job_id_seq'::regclass), 0) < %(last)s::bigint
