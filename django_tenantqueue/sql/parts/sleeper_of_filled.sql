-- FROM and WHERE: the sleeping workers that take jobs of one of the `filled` queues.
    FROM tenantqueue_worker w
    WHERE w.sleeping_until > statement_timestamp()
        AND EXISTS (
            SELECT
            FROM filled
            WHERE
-- include: takes_filled
        )
