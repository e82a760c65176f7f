-- The last id that this database has given to a job; NULL: none. Locks nothing. Index: none.
SELECT pg_sequence_last_value('tenantqueue_job_id_seq'::regclass)
