-- Register a worker process.
INSERT INTO tenantqueue_worker (
    name, host, pid, supervisor_pid, version, started_at, heartbeat_at, queues, exclude_queues,
    tenants, threads, async_slots, draining, leased, role, executor
)
VALUES (
    %(name)s, %(host)s, %(pid)s, %(supervisor_pid)s, %(version)s, clock_timestamp(),
    clock_timestamp(), %(queues)s::text[], %(exclude_queues)s::text[], %(tenants)s::text[],
    %(threads)s, %(async_slots)s, false, %(leased)s, %(role)s, %(executor)s
)
RETURNING id
