-- Tables that have grown to several times what the planner last saw of them. Prepared statements
-- keep plans until the statistics change: those made for a few rows read the whole table for each
-- job.
-- Locks: none. Index: pg_class by oid.
SELECT given.name
FROM unnest(%(tables)s::text[]) AS given (name)
CROSS JOIN LATERAL (
    SELECT c.oid, c.relpages
    FROM pg_class c
    WHERE c.oid = to_regclass(given.name)
    OFFSET 0
) known
WHERE pg_relation_size(known.oid) > current_setting('block_size')::bigint
    * greatest(%(least_pages)s::bigint, known.relpages::bigint * %(growth)s::bigint)
ORDER BY given.name
