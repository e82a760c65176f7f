-- Queues with failures since `since`, for some pairs of task and exception class: of each pair the
-- `listed` queues that failed most, and how many there are. The newest `most` rows of each pair are
-- read; `capped`: there may be more queues. Index: tenantqueue_figure_groups.
WITH counted AS (
    SELECT
        wanted.pair, newest.queue_id, sum(newest.failures)::bigint AS failures,
        sum(count(*)) OVER (PARTITION BY wanted.pair) AS seen
    FROM unnest(%(tasks)s::text[], %(errors)s::text[]) WITH ORDINALITY AS wanted (task, error, pair)
    CROSS JOIN LATERAL (
        SELECT f.queue_id, f.failed + f.retried AS failures
        FROM tenantqueue_figure f
        WHERE f.task = wanted.task AND f.error = wanted.error AND f.error <> ''
            AND f.at >= %(since)s::timestamptz
        ORDER BY f.task DESC, f.error DESC, f.at DESC
        LIMIT %(most)s
    ) newest
    GROUP BY wanted.pair, newest.queue_id
), ranked AS (
    SELECT
        c.*, count(*) OVER (PARTITION BY c.pair) AS queues,
        row_number() OVER (PARTITION BY c.pair ORDER BY c.failures DESC, c.queue_id) AS nth
    FROM counted c
    -- the rows of all queues lie between the others
    WHERE c.queue_id <> 0
)
SELECT
    ranked.pair::integer - 1, ranked.queue_id, ranked.failures, ranked.queues,
    ranked.seen >= %(most)s AS capped
FROM ranked
WHERE ranked.nth <= %(listed)s
ORDER BY ranked.pair, ranked.nth
