-- Up to 20 jobs that a move waits for: claimed jobs of the queues, and unfinished jobs of others
-- with a follow-up in one of the queues, or the reverse. Locks nothing.
-- Index: tenantqueue_job_slots. Follow-ups are found by a sequential scan on purpose: a move does
-- it a few times a second while it waits, and few jobs have follow-ups.
SELECT j.id, j.state IN ('queued', 'running') AS is_claimed
FROM tenantqueue_job_hot j
WHERE j.queue_id = ANY (%(queues)s::integer[]) AND j.state IN ('queued', 'running')
UNION
SELECT j.id, false
FROM tenantqueue_job_hot j
WHERE j.follow_ups IS NOT NULL
    AND jsonb_path_exists(
        j.follow_ups,
        CASE
            WHEN j.queue_id = ANY (%(queues)s::integer[])
                THEN '$.**.queue_id ? (!(@ == $ids[*]))'::jsonpath
            ELSE '$.**.queue_id ? (@ == $ids[*])'::jsonpath
        END,
        jsonb_build_object('ids', to_jsonb(%(queues)s::integer[]))
    )
ORDER BY 1
LIMIT 20
