-- Measure one table of the history: its pages, its bytes with its indexes and values that are
-- stored apart, and about how many rows it has.
-- Locks: nothing. It reads the catalogue by name.
SELECT
    pg_relation_size(leaf.oid) / current_setting('block_size')::bigint AS pages,
    pg_total_relation_size(leaf.oid) AS bytes,
    greatest(leaf.reltuples, 0)::bigint AS about
FROM pg_class leaf
JOIN pg_class history USING (relnamespace)
WHERE history.oid = 'tenantqueue_job_history'::regclass AND leaf.relname = %(leaf)s
