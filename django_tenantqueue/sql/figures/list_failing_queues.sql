-- Queues with failures since `since`, for some pairs of task and class of error: of each pair the
-- `listed` queues that failed most, and how many there are. The newest `most` rows of each pair are
-- read; `capped`: there may be more queues. Index: tenantqueue_figure_groups.
WITH candidate AS MATERIALIZED (
    SELECT wanted.pair, newest.queue_id, newest.failures
    FROM unnest(%(names)s::text[], %(errors)s::text[]) WITH ORDINALITY AS wanted (name, error, pair)
    CROSS JOIN LATERAL (
        SELECT f.queue_id, f.failed + f.retried AS failures
        FROM tenantqueue_figure f
        WHERE f.name = wanted.name AND f.error = wanted.error AND f.error <> ''
            AND f.at >= %(since)s::timestamptz
        ORDER BY f.name DESC, f.error DESC, f.at DESC
        LIMIT %(most)s
    ) newest
), ranked AS (
    SELECT
        c.pair, c.queue_id, sum(c.failures)::bigint AS failures,
        row_number() OVER (PARTITION BY c.pair ORDER BY sum(c.failures) DESC, c.queue_id) AS nth,
        count(*) OVER (PARTITION BY c.pair) AS queues
    FROM candidate c
    -- the rows of all queues lie between the others
    WHERE c.queue_id <> 0
    GROUP BY c.pair, c.queue_id
)
SELECT
    ranked.pair::integer - 1, ranked.queue_id, ranked.failures, ranked.queues,
    (SELECT count(*) FROM candidate c WHERE c.pair = ranked.pair) >= %(most)s AS capped
FROM ranked
WHERE ranked.nth <= %(listed)s
ORDER BY ranked.pair, ranked.nth
