-- Announce that this worker sleeps. It claims once more after this has committed.
UPDATE tenantqueue_worker
SET sleeping_until = clock_timestamp() + make_interval(secs => %(seconds)s::float8)
WHERE id = %(worker)s
RETURNING id
