-- One page of the `newest` jobs, `most` or fewer, that have the text in their name, their labels or
-- their arguments. Arguments of 8 kB and more are not looked at: each of them would be read from
-- another table. `floor` is the last job that was looked at when there are more.
looked AS MATERIALIZED (
    SELECT
        j.id, j.state, j.queue_id, j.name,
        position(lower(%(text)s::text) IN lower(j.name)) > 0
        OR position(lower(%(text)s::text) IN lower(array_to_string(j.labels, ' '))) > 0
        OR (
            pg_column_size(j.args) < 8192
            AND position(lower(%(text)s::text) IN lower(j.args::text)) > 0
        ) AS fits
    FROM newest j
), candidate AS (
    SELECT looked.id, looked.state, looked.queue_id, looked.name
    FROM looked
    WHERE looked.fits
), seen AS (
    SELECT CASE WHEN count(*) = %(most)s THEN min(looked.id) ELSE 0 END AS floor, false AS capped
    FROM looked
)
-- include: page_of_ids
