-- How far the newest `most` of the `candidate` jobs reach: see page_of_ids.sql.
seen AS (
    SELECT
        CASE WHEN count(*) = %(most)s THEN min(candidate.id) ELSE 0 END AS floor, false AS capped
    FROM candidate
)
