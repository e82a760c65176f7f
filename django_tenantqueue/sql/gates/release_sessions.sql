-- Let the next job of sessions through, and take back one that is no longer next.
-- Third statement of a release, after lock_gates.sql and make_sessions.sql of the same READ COMMITTED
-- transaction: its snapshot then sees what earlier releases of these sessions let through.
--
-- One job of a session is inside. Next is the first by (priority, run_at, id). A head that waits
-- for its time blocks the session, or, if it is to be overtaken, lets the first job go that is due,
-- unless one that blocks comes before that. A job that is inside and was never claimed goes back
-- when a more urgent one is in the line, or when the session is paused or halted; one that waits
-- for another attempt, when it is to be overtaken. A job of a session that has a monitor is that
-- monitor's anchor: it keeps its turn until it has ended.
-- Locks: the jobs that move, SKIP LOCKED: what an operator holds moves at the next sweep.
-- Indexes: tenantqueue_job_session_line, tenantqueue_job_session_inside,
-- tenantqueue_job_session_block, the primary key for the update.
WITH RECURSIVE given AS MATERIALIZED (
    SELECT unnest(%(keys)s::text[]) AS key
),
-- include: sessions
,
-- include: misplaced
,
-- include: move_jobs
