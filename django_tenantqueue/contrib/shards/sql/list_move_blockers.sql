-- Up to 20 jobs that a move waits for: claimed jobs of the queues, and unfinished jobs of others
-- with a follow-up in one of the queues. And those that cannot end while the queues are paused:
-- waiting jobs of the queues with a follow-up in another one. Locks nothing.
-- Arguments are not looked at: only those in a list named follow_ups have a queue_id that counts.
-- Index: tenantqueue_job_slots. Follow-ups are found by a sequential scan on purpose: a move does
-- it a few times a second while it waits, and few jobs have follow-ups.
SELECT j.id, true AS is_claimed, false AS cannot_end
FROM tenantqueue_job_hot j
WHERE j.queue_id = ANY (%(queues)s::integer[]) AND j.state IN ('queued', 'running')
UNION ALL
SELECT j.id, false, j.queue_id = ANY (%(queues)s::integer[])
FROM tenantqueue_job_hot j
WHERE j.follow_ups IS NOT NULL
    AND NOT (j.queue_id = ANY (%(queues)s::integer[]) AND j.state IN ('queued', 'running'))
    AND jsonb_path_exists(
        jsonb_build_object('follow_ups', j.follow_ups),
        CASE
            WHEN j.queue_id = ANY (%(queues)s::integer[])
                THEN '$.**.follow_ups[*].queue_id ? (!(@ == $ids[*]))'::jsonpath
            ELSE '$.**.follow_ups[*].queue_id ? (@ == $ids[*])'::jsonpath
        END,
        jsonb_build_object('ids', to_jsonb(%(queues)s::integer[]))
    )
ORDER BY cannot_end DESC, id
LIMIT 20
