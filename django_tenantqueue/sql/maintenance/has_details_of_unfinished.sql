-- Whether a month has details of a monitor that has not ended.
-- Indexes: the primary key of waiting jobs for the anchors, tenantqueue_history_monitor.
SELECT EXISTS (
    SELECT
    FROM tenantqueue_concurrentjobmonitor m
    WHERE (SELECT true FROM tenantqueue_job_hot anchor WHERE anchor.id = m.anchor_id)
        AND (
            SELECT true
            FROM tenantqueue_job_history j
            WHERE j.monitor_id = m.id
                AND j.finished_at >= %(start)s::timestamptz AND j.finished_at < %(end)s::timestamptz
            LIMIT 1
        )
)
