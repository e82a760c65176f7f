-- Let jobs of users through, as many as their caps allow, and take back what no worker has claimed
-- and is too much or less urgent than what waits. Third statement of a release: see
-- release_sessions.sql.
-- Locks: the jobs that move, SKIP LOCKED: what an operator holds moves at the next sweep.
-- Indexes: tenantqueue_job_user_line, tenantqueue_job_user_inside, the primary key for the update.
WITH RECURSIVE given AS MATERIALIZED (
    SELECT unnest(%(keys)s::text[]) AS key
),
-- include: users
,
-- include: misplaced
,
-- include: move_jobs
