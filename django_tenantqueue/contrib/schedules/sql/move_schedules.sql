-- Writes what has become of the ticks of schedules that the transaction has locked, and when each
-- is due next. Null leaves the last run, its tick, its job and its lateness as they are.
-- Index: the primary key.
UPDATE tenantqueue_schedule s
SET
    tick_at = m.tick_at,
    next_at = m.next_at,
    after_tenant = m.after_tenant,
    last_at = coalesce(m.last_at, s.last_at),
    last_tick_at = coalesce(m.last_tick_at, s.last_tick_at),
    last_job_id = coalesce(m.last_job_id, s.last_job_id),
    lateness_seconds = coalesce(m.lateness_seconds, s.lateness_seconds),
    last_error = m.last_error,
    last_error_at = m.last_error_at,
    failures = m.failures
FROM jsonb_to_recordset(%(moves)s::jsonb) AS m (
    id bigint,
    tick_at timestamptz,
    next_at timestamptz,
    after_tenant text,
    last_at timestamptz,
    last_tick_at timestamptz,
    last_job_id bigint,
    lateness_seconds float8,
    last_error text,
    last_error_at timestamptz,
    failures int
)
WHERE s.id = m.id
