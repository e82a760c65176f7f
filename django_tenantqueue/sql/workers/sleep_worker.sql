-- Announce that this worker sleeps, and return the number of workers, at most 40. The worker claims
-- once more after the commit. With `renew` the announcement is prolonged, unless an enqueuer has
-- ended it and notified this worker.
-- A crash of the server ends all sleeps, because their connections break. So the commit does not
-- wait for the disk or a standby. (On a worker's own connection, each of these statements is a
-- transaction.) The same holds for clear_sleep, and for wake_workers and wake_any_workers when
-- nothing else is committed with them. Index: primary key.
UPDATE tenantqueue_worker
SET sleeping_until = clock_timestamp() + make_interval(secs => %(seconds)s::float8)
WHERE id = %(worker)s AND (NOT %(renew)s::boolean OR sleeping_until IS NOT NULL)
RETURNING
    (SELECT count(*) FROM (SELECT w.id FROM tenantqueue_worker w LIMIT 40) counted) AS workers,
    set_config('synchronous_commit', 'off', true)
