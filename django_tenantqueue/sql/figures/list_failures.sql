-- Failures since `since` in periods of `seconds`, by task and class of error: of the `groups` most
-- frequent groups. Queue 0 is all queues, whose rows count each failure once. Of each queue the
-- newest `most` rows are read; `read_from` is where the first queue that has more was left.
-- Index: tenantqueue_figure_errors.
WITH candidate AS MATERIALIZED (
    SELECT wanted.id, newest.*
    FROM unnest(%(queues)s::integer[]) AS wanted (id)
    CROSS JOIN LATERAL (
        SELECT f.at, f.name, f.error, f.failed, f.retried, f.last_job_id
        FROM tenantqueue_figure f
        WHERE f.queue_id = wanted.id AND f.at >= %(since)s::timestamptz AND f.error <> ''
        ORDER BY f.queue_id DESC, f.at DESC
        LIMIT %(most)s
    ) newest
), seen AS (
    SELECT max(capped.at) AS read_from
    FROM (
        SELECT min(c.at) AS at
        FROM candidate c
        GROUP BY c.id
        HAVING count(*) >= %(most)s
    ) capped
), biggest AS MATERIALIZED (
    SELECT c.name, c.error
    FROM candidate c
    WHERE (%(name)s::text IS NULL OR c.name = %(name)s::text)
        AND (%(error)s::text IS NULL OR c.error = %(error)s::text)
    GROUP BY c.name, c.error
    ORDER BY sum(c.failed + c.retried) DESC, c.name, c.error
    LIMIT %(groups)s
)
SELECT
    seen.read_from, found.name, found.error, found.period, found.failed, found.retried,
    found.first_at, found.last_at, found.last_job_id
FROM seen
LEFT JOIN (
    SELECT
        date_bin(
            make_interval(secs => %(seconds)s::float8), c.at, %(since)s::timestamptz
        ) AS period,
        c.name, c.error, sum(c.failed)::bigint AS failed, sum(c.retried)::bigint AS retried,
        min(c.at) AS first_at, max(c.at) AS last_at, max(c.last_job_id) AS last_job_id
    FROM candidate c
    JOIN biggest ON biggest.name = c.name AND biggest.error = c.error
    GROUP BY 1, c.name, c.error
) found ON true
