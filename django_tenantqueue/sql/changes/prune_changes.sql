-- Delete entries of the audit trail that are older than `keep_days`, among the `most` oldest ids.
-- Returns how many. Ids rise with time, nearly: no index of it is needed.
-- Locks: the rows, SKIP LOCKED. Index: tenantqueue_change_pkey.
WITH oldest AS MATERIALIZED (
    SELECT c.id
    FROM tenantqueue_change c
    ORDER BY c.id
    LIMIT %(most)s::integer
    FOR UPDATE SKIP LOCKED
), deleted AS (
    DELETE FROM tenantqueue_change AS change
    WHERE change.id = ANY (ARRAY(SELECT o.id FROM oldest o))
        AND change.made_at < statement_timestamp() - make_interval(days => %(keep_days)s::integer)
    RETURNING change.id
)
SELECT count(*)
FROM deleted
