-- The transactions that are open in this database, with what their sessions say of themselves. Each
-- has a lock on its virtual id, before its first snapshot. Prepared ones have only their names.
-- Locks nothing. Index: none, views of the server's memory.
SELECT
    l.virtualxid AS name,
    concat_ws(', ', 'process ' || l.pid, nullif(a.application_name, '')) AS label
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.granted AND a.datname = current_database()
    AND l.pid <> pg_backend_pid()
    AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
UNION ALL
SELECT p.gid, 'prepared transaction ' || p.gid
FROM pg_prepared_xacts p
WHERE p.database = current_database()
