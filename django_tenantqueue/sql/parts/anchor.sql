-- The anchor of monitor `m`, while it is unfinished.
LEFT JOIN LATERAL (
    SELECT j.state, j.held_by
    FROM tenantqueue_job_hot j
    WHERE j.id = m.anchor_id
    OFFSET 0
) anchor ON true
