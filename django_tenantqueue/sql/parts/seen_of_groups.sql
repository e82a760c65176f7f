-- How far the `candidate` jobs reach when the newest `most` of each `newest_of` were looked at: see
-- page_of_ids.sql.
seen AS (
    SELECT coalesce(max(part.lowest), 0) AS floor, false AS capped
    FROM (
        SELECT min(candidate.id) AS lowest
        FROM candidate
        GROUP BY candidate.newest_of
        HAVING count(*) = %(most)s
    ) part
)
