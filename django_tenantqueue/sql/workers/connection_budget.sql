-- How many connections the server allows, and how many the registered workers may open: one for
-- each child and each of its threads, and two for each supervisor.
-- Reads the table of workers with a sequential scan on purpose: it holds the running ones only.
SELECT
    current_setting('max_connections')::integer
        - current_setting('superuser_reserved_connections')::integer
        - coalesce(current_setting('reserved_connections', true)::integer, 0) AS allowed,
    (
        SELECT coalesce(
            sum(
                -- a runner has another one for its lock, and one of Django's
                CASE w.role WHEN 'worker' THEN w.threads + 1 WHEN 'runner' THEN 3 ELSE 1 END
            ),
            0
        ) + 2 * count(DISTINCT (w.host, w.supervisor_pid))
        FROM tenantqueue_worker w
    )::integer AS fleet
