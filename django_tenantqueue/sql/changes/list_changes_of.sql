-- The newest changes of one object below the id `before`, by its id and, if it is known by one, by
-- its `label`: rows of sessions, caps and task controls come and go under the same name.
-- The first CTE is read whole, since the planner would walk the table in its order instead.
-- Indexes: tenantqueue_change_ids, tenantqueue_change_label.
WITH by_id AS MATERIALIZED (
    SELECT c.id
    FROM tenantqueue_change c
    WHERE c.object_ids @> ARRAY[%(object_id)s::bigint] AND c.object_kind = %(kind)s
), by_label AS MATERIALIZED (
    SELECT c.id
    FROM tenantqueue_change c
    WHERE c.object_label = %(label)s AND c.tenant = %(tenant)s AND c.object_kind = %(kind)s
        AND c.id < %(before)s::bigint
    ORDER BY c.object_label DESC, c.id DESC
    LIMIT %(most)s::integer
)
SELECT id
FROM (SELECT by_id.id FROM by_id UNION SELECT by_label.id FROM by_label) found
WHERE found.id < %(before)s::bigint
ORDER BY id DESC
LIMIT %(most)s::integer
