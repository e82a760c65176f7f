-- Put details into the line of a monitor. `details` is one JSON array with an object for each,
-- since each may call another function. Ids rise in the order of the array, in which details are
-- fed. An object with `id` and `held_by` is the monitor's anchor, which does not stand in its line.
INSERT INTO tenantqueue_job_hot (
    id, queue_id, lane, priority, is_async, state, held_by, run_at, expires_at, max_attempts,
    timeout_seconds, hard_timeout_seconds, name, source_type, source_id, source_method, args,
    labels, created_by, context, monitor_id, session_key, user_key, exclusive_key, follow_ups
)
SELECT
    coalesce(detail.id, nextval('tenantqueue_job_id_seq')), detail.queue_id, %(lane)s::smallint,
    %(priority)s::smallint, detail.is_async, 'held', coalesce(detail.held_by, 'monitor'),
    clock_timestamp(), detail.expires_at, detail.max_attempts, detail.timeout_seconds,
    detail.hard_timeout_seconds, detail.name, detail.source_type, detail.source_id,
    detail.source_method, detail.args, detail.labels, detail.created_by, %(context)s::jsonb,
    %(monitor_id)s::bigint, detail.session_key, detail.user_key, detail.exclusive_key,
    detail.follow_ups
FROM jsonb_to_recordset(%(details)s::jsonb) AS detail (
    id bigint, queue_id integer, is_async boolean, held_by text, expires_at timestamptz,
    max_attempts smallint, timeout_seconds float8, hard_timeout_seconds float8, name text,
    source_type text, source_id text, source_method text, args jsonb, labels text[],
    created_by text, session_key text, user_key text, exclusive_key text, follow_ups jsonb
)
RETURNING NULL
