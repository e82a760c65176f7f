-- Count the jobs inside and in the line of sessions and users, each up to `most`, and read the
-- first of both for sessions. `ids` are rows of the table of sessions.
-- Locks: none. Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_limit_user_line, tenantqueue_job_limit_user_inside.
WITH
-- include: gate_jobs
SELECT
    s.id, inside.jobs AS inside, line.jobs AS line, first.*, head.*
FROM (
    SELECT s.id, replace(s.kind, 'serial', 'session') AS kind, s.gate_key AS key
    FROM tenantqueue_session s
    WHERE s.id = ANY (%(ids)s::bigint[])
) s
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (
        SELECT FROM inside_job i WHERE i.kind = s.kind AND i.key = s.key LIMIT %(most)s::integer
    ) job
) inside
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs
    FROM (
        SELECT FROM line_job l WHERE l.kind = s.kind AND l.key = s.key LIMIT %(most)s::integer
    ) job
) line
LEFT JOIN LATERAL (
    SELECT i.id, i.state, i.run_at, i.held_by, i.monitor_id
    FROM inside_job i
    WHERE s.kind = 'session' AND i.kind = 'session' AND i.key = s.key
    LIMIT 1
) first ON true
LEFT JOIN LATERAL (
    SELECT j.id, j.run_at
    FROM tenantqueue_job_hot j
    WHERE s.kind = 'session' AND j.held_by = 'session' AND j.session_key = s.key
    ORDER BY j.session_key, j.priority, j.run_at, j.id
    LIMIT 1
) head ON true
