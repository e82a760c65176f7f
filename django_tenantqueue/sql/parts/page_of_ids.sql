-- One page of the `candidate` jobs: those that fit the filters, the newest first. Where a group,
-- `newest_of`, has `most` of them, it has more below: nothing is missing above the highest of these
-- ends, `floor`. The group NULL is in no order of ids: with `most`, any may be missing (`capped`).
seen AS (
    SELECT
        coalesce(max(cut.lowest) FILTER (WHERE cut.newest_of IS NOT NULL), 0) AS floor,
        coalesce(bool_or(cut.newest_of IS NULL), false) AS capped
    FROM (
        SELECT candidate.newest_of, min(candidate.id) AS lowest
        FROM candidate
        GROUP BY candidate.newest_of
        HAVING count(*) = %(most)s
    ) cut
)
SELECT seen.floor, seen.capped, found.id
FROM seen
LEFT JOIN LATERAL (
    SELECT candidate.id
    FROM candidate
    WHERE candidate.id < %(before)s AND candidate.id >= seen.floor
        AND candidate.id >= %(after)s AND candidate.fits
        AND candidate.state = ANY (%(states)s::text[])
        AND (%(queues)s::integer[] IS NULL OR candidate.queue_id = ANY (%(queues)s::integer[]))
        AND (%(task)s::text IS NULL OR candidate.task = %(task)s::text)
    ORDER BY candidate.id DESC
    LIMIT %(page)s
) found ON true
