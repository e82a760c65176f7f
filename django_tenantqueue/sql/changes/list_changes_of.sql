-- The newest changes of one object below the id `before`, by its id and, if it is known by one, by
-- its `label`: rows of sessions, caps and task controls come and go under the same name.
-- What is compared outside of the two parts is so on purpose: the planner would read the whole of
-- another index for it.
-- Indexes: tenantqueue_change_ids, tenantqueue_change_label.
WITH by_id AS MATERIALIZED (
    SELECT c.id, c.object_kind
    FROM tenantqueue_change c
    WHERE c.object_ids @> ARRAY[%(object_id)s::bigint]
), by_label AS MATERIALIZED (
    SELECT c.id, c.tenant
    FROM tenantqueue_change c
    WHERE c.object_label = %(label)s AND c.object_kind = %(kind)s AND c.id < %(before)s::bigint
    ORDER BY c.object_label DESC, c.object_kind DESC, c.id DESC
    LIMIT %(most)s::integer
)
SELECT found.id
FROM (
    SELECT by_id.id
    FROM by_id
    WHERE by_id.object_kind = %(kind)s AND by_id.id < %(before)s::bigint
    UNION
    SELECT by_label.id
    FROM by_label
    WHERE by_label.tenant = %(tenant)s
) found
ORDER BY found.id DESC
LIMIT %(most)s::integer
