-- Put details into the line of a monitor. `details` is one JSON array with an object for each,
-- since each may call another function; `shared` has the columns that it leaves out. Ids rise in
-- the order of the array, in which details are fed. An object with `id` and `held_by` is the
-- monitor's anchor, which does not stand in its line.
INSERT INTO tenantqueue_job_hot (
-- include: new_job_columns
)
SELECT
    coalesce(id, nextval('tenantqueue_job_id_seq')), lane, 'held', held_by, clock_timestamp(),
    expires_at, follow_ups,
-- include: enqueued_columns
FROM jsonb_populate_recordset(
    jsonb_populate_record(NULL::tenantqueue_job_hot, %(shared)s::jsonb), %(details)s::jsonb
)
RETURNING NULL
