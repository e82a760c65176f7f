-- Announce that this worker sleeps. It claims once more after this has committed. With `renew` the
-- announcement is prolonged, unless somebody has ended it: that one has notified this worker.
-- A crash of the server ends all sleeps, since their connections break. So this need not be on disk, or
-- with a standby, before it counts: the commit does not wait. (A worker's own connection: each statement
-- of these is a transaction.) Likewise in clear_sleep, and in wake_workers and wake_any_workers when
-- nothing else is committed with them.
UPDATE tenantqueue_worker
SET sleeping_until = clock_timestamp() + make_interval(secs => %(seconds)s::float8)
WHERE id = %(worker)s AND (NOT %(renew)s::boolean OR sleeping_until IS NOT NULL)
RETURNING id, set_config('synchronous_commit', 'off', true)
