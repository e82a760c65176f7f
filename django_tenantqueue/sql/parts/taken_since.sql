-- Since when slots of a queue are taken, as far as the worker knows. Older entries of the index of
-- slots belong to jobs that have ended. The count does not read them.
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
