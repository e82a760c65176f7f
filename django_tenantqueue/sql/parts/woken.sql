-- Clear the sleep of each `sleeper` and notify it on its own channel, whose name listen() computes,
-- too. `is_alone`: the statement is a transaction of its own, which commits as in sleep_worker.sql.
woken AS (
    UPDATE tenantqueue_worker AS w
    SET sleeping_until = NULL
    WHERE w.id = ANY (ARRAY(SELECT s.id FROM sleeper s))
    RETURNING
        w.id,
        pg_notify(concat_ws('_', 'tenantqueue', w.tableoid::oid, w.id), ''),
        CASE WHEN %(is_alone)s::boolean THEN set_config('synchronous_commit', 'off', true) END
)
