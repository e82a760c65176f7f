-- Halt the sessions of `ended` (key, job_id, wanted), where the session says so or, if it says
-- nothing, the job, and record it. A row that was pruned is made again.
halted AS (
    INSERT INTO tenantqueue_session AS session (
        kind, tenant, key, gate_key, created_at, halted_at, halted_by
    )
    SELECT DISTINCT ON (ended.key)
        'serial',
        regexp_replace(substring(ended.key FROM E'^(?:[^\\\\/]|\\\\.)*'), E'\\\\(.)', E'\\1', 'g'),
        substring(ended.key FROM E'^(?:[^\\\\/]|\\\\.)*/(.*)$'), ended.key, clock_timestamp(),
        clock_timestamp(), ended.job_id
    FROM ended
    LEFT JOIN LATERAL (
        SELECT s.on_failure
        FROM tenantqueue_session s
        WHERE s.kind = 'serial' AND s.gate_key = ended.key
        OFFSET 0
    ) s ON true
    WHERE CASE WHEN s.on_failure <> '' THEN s.on_failure = 'halt' ELSE ended.wanted END
    ORDER BY ended.key, ended.job_id
    ON CONFLICT (gate_key, kind) DO UPDATE
    SET halted_at = excluded.halted_at, halted_by = excluded.halted_by
    WHERE session.halted_at IS NULL AND session.on_failure <> 'continue'
    RETURNING session.id, session.tenant, session.key, session.halted_at, session.halted_by
), recorded AS (
    INSERT INTO tenantqueue_change (
        actor, source, action, object_kind, object_ids, object_count, object_label, tenant,
        before, after
    )
    SELECT
        'worker', 'worker', 'halt', 'session', ARRAY[halted.id], 1,
        coalesce(nullif(halted.tenant, ''), '-') || ' / ' || halted.key, halted.tenant,
        '{"halted_at": null, "halted_by": null}'::jsonb,
        jsonb_build_object('halted_at', halted.halted_at, 'halted_by', halted.halted_by)
    FROM halted
)
