-- Let the next job of each exclusive key through; take it back when a more urgent one waits and no
-- worker has claimed it. Second statement of a release: see release_sessions.sql.
-- Locks: the jobs that move, SKIP LOCKED: what an operator holds moves at the next sweep.
-- Indexes: tenantqueue_job_exclusive_line, tenantqueue_job_exclusive_inside,
-- tenantqueue_job_exclusive_reject, the primary key for the update.
WITH RECURSIVE given AS MATERIALIZED (
    SELECT unnest(%(keys)s::text[]) AS key
),
-- include: exclusives
,
-- include: misplaced
,
-- include: move_jobs
