-- One page of the `candidate` jobs: those that fit the filters, the newest first. `seen` says how
-- far they were looked at: `floor`, the id down to which none is missing, and `capped`.
SELECT seen.floor, seen.capped, found.id
FROM seen
LEFT JOIN LATERAL (
    SELECT candidate.id
    FROM candidate
    WHERE candidate.id < %(before)s AND candidate.id >= seen.floor AND candidate.fits
        AND (%(states)s::text[] IS NULL OR candidate.state = ANY (%(states)s::text[]))
        AND (%(queues)s::integer[] IS NULL OR candidate.queue_id = ANY (%(queues)s::integer[]))
        AND (%(name)s::text IS NULL OR candidate.name = %(name)s::text)
    ORDER BY candidate.id DESC
    LIMIT %(page)s
) found ON true
