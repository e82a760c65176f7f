-- Add the minute figures that have settled, up to an hour of them, to the totals of their tasks.
-- A task without a row gets one while fewer than `most` have one. Its counter begins at 0: later
-- minutes count, and what was counted before stays with the other tasks. A task that did not run
-- for `silent` seconds loses its row, and its counts leave those of all tasks.
-- Returns the first minute that is not added, and whether more have settled.
-- Locks: the rows of the totals. Indexes: the primary keys.
WITH span AS MATERIALIZED (
    SELECT moved.since, settled.at AS settled, greatest(
        moved.since, least(settled.at, moved.since + interval '1 hour')
    ) AS upto
    FROM (
        SELECT date_trunc(
            'minute',
            coalesce(%(now)s::timestamptz, clock_timestamp())
            - make_interval(secs => %(settle)s::float8),
            'UTC'
        ) AS at
    ) settled
    CROSS JOIN LATERAL (
        SELECT coalesce(
            (SELECT t.at FROM tenantqueue_figuretotal t WHERE t.task = '' FOR UPDATE), settled.at
        ) AS since
    ) moved
), recent AS MATERIALIZED (
    SELECT
        f.task, f.at < span.upto AS settled,
-- include: sum_figures_exactly
    FROM span
    JOIN tenantqueue_figure f ON f.queue_id = 0 AND f.at >= span.since
    WHERE f.error = '' AND f.minutes = 1
    GROUP BY f.task, f.at < span.upto
), chosen AS MATERIALIZED (
    SELECT r.task
    FROM recent r
    WHERE r.task <> ''
        AND NOT EXISTS (SELECT FROM tenantqueue_figuretotal t WHERE t.task = r.task)
    GROUP BY r.task
    ORDER BY sum(r.started) DESC, r.task
    LIMIT greatest(
        0, %(most)s::integer - (SELECT count(*) FROM tenantqueue_figuretotal t WHERE t.task <> '')
    )
), gone AS (
    DELETE FROM tenantqueue_figuretotal t
    USING span
    WHERE t.task <> '' AND t.at < span.upto - make_interval(secs => %(silent)s::float8)
        AND NOT EXISTS (SELECT FROM recent r WHERE r.task = t.task)
    RETURNING t.*
), part AS (
    SELECT
        r.task, r.started, r.succeeded, r.failed, r.retried, r.cancelled, r.wait_micros,
        r.run_micros, r.waits, r.runs
    FROM recent r
    WHERE r.settled AND (
        r.task = '' OR EXISTS (SELECT FROM tenantqueue_figuretotal t WHERE t.task = r.task)
    )
    UNION ALL
    SELECT
        less.task, -less.started, -less.succeeded, -less.failed, -less.retried, -less.cancelled,
        -less.wait_micros, -less.run_micros,
        ARRAY(SELECT -n FROM unnest(less.waits) WITH ORDINALITY u (n, place) ORDER BY place),
        ARRAY(SELECT -n FROM unnest(less.runs) WITH ORDINALITY u (n, place) ORDER BY place)
    FROM (
        SELECT
            '' AS task, g.started, g.succeeded, g.failed, g.retried, g.cancelled, g.wait_micros,
            g.run_micros, g.waits, g.runs
        FROM gone g
        UNION ALL
        SELECT
            r.task, r.started, r.succeeded, r.failed, r.retried, r.cancelled, r.wait_micros,
            r.run_micros, r.waits, r.runs
        FROM recent r
        JOIN chosen ON chosen.task = r.task
        WHERE NOT r.settled
    ) less
    UNION ALL
    SELECT named.task, 0, 0, 0, 0, 0, 0, 0, '{}'::bigint[], '{}'::bigint[]
    FROM (SELECT '' AS task UNION ALL SELECT chosen.task FROM chosen) named
), added AS (
    INSERT INTO tenantqueue_figuretotal AS total (
        task, at, started, succeeded, failed, retried, cancelled, wait_micros, run_micros, waits,
        runs
    )
    SELECT
        part.task, span.upto, sum(part.started), sum(part.succeeded), sum(part.failed),
        sum(part.retried), sum(part.cancelled), sum(part.wait_micros), sum(part.run_micros),
        tenantqueue_sum_counts(part.waits), tenantqueue_sum_counts(part.runs)
    FROM part
    CROSS JOIN span
    GROUP BY part.task, span.upto
    ORDER BY part.task
    ON CONFLICT (task) DO UPDATE
    SET at = excluded.at,
        started = total.started + excluded.started,
        succeeded = total.succeeded + excluded.succeeded,
        failed = total.failed + excluded.failed,
        retried = total.retried + excluded.retried,
        cancelled = total.cancelled + excluded.cancelled,
        wait_micros = total.wait_micros + excluded.wait_micros,
        run_micros = total.run_micros + excluded.run_micros,
        waits = tenantqueue_add_counts(total.waits, excluded.waits),
        runs = tenantqueue_add_counts(total.runs, excluded.runs)
)
SELECT span.upto, span.upto < span.settled AS more
FROM span
