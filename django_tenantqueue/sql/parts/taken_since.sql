-- Since when slots are taken of the queues that the worker has for itself: older entries of the index
-- of slots are those of jobs that have ended, which the count need not read.
since AS MATERIALIZED (
    SELECT
        known.queue_id,
        'epoch'::timestamptz + known.microseconds * interval '1 microsecond' AS taken_at
    FROM unnest(
        %(taken_queues)s::integer[], %(taken_since)s::bigint[]
    ) AS known (queue_id, microseconds)
    WHERE %(by_ids)s::boolean
        AND 'epoch'::timestamptz + %(taken_as_of)s::bigint * interval '1 microsecond'
            <= clock_timestamp()
)
