-- Failures since `since` in periods of `seconds`, by task and exception class: of the `groups` most
-- frequent groups. Queue 0 is all queues, whose rows count each failure once. Of each queue the
-- newest `most` rows are read; `read_from` is where the first queue that has more was left.
-- Index: tenantqueue_figure_errors.
WITH summed AS MATERIALIZED (
    SELECT
        wanted.id, newest.task, newest.error, date_bin(
            make_interval(secs => %(seconds)s::float8), newest.at, %(since)s::timestamptz
        ) AS period,
        sum(newest.failed)::bigint AS failed, sum(newest.retried)::bigint AS retried,
        min(newest.at) AS first_at, max(newest.at) AS last_at,
        max(newest.last_job_id) AS last_job_id, count(*) AS seen
    FROM unnest(%(queues)s::integer[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT f.at, f.task, f.error, f.failed, f.retried, f.last_job_id
        FROM tenantqueue_figure f
        WHERE f.queue_id = wanted.id AND f.at >= %(since)s::timestamptz AND f.error <> ''
        ORDER BY f.queue_id DESC, f.at DESC
        LIMIT %(most)s
    ) newest
    GROUP BY wanted.id, newest.task, newest.error, period
), capped AS (
    SELECT min(s.first_at) AS first_at
    FROM summed s
    GROUP BY s.id
    HAVING sum(s.seen) >= %(most)s
), biggest AS MATERIALIZED (
    SELECT s.task, s.error
    FROM summed s
    WHERE (%(task)s::text IS NULL OR s.task = %(task)s::text)
        AND (%(error)s::text IS NULL OR s.error = %(error)s::text)
    GROUP BY s.task, s.error
    ORDER BY sum(s.failed + s.retried) DESC, s.task, s.error
    LIMIT %(groups)s
)
SELECT
    read.read_from, found.task, found.error, found.period, found.failed, found.retried,
    found.first_at, found.last_at, found.last_job_id, found.id
FROM (SELECT max(capped.first_at) AS read_from FROM capped) read
LEFT JOIN (
    SELECT s.*
    FROM summed s
    JOIN biggest ON biggest.task = s.task AND biggest.error = s.error
) found ON true
