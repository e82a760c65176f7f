-- Make the rows of sessions or users that have none. Second statement of a release: under the lock of
-- lock_gates.sql nobody else does. Index: the unique one of (gate_key, kind).
INSERT INTO tenantqueue_session (kind, tenant, key, gate_key, created_at)
SELECT %(kind)s::text, given.tenant, given.name, given.key, clock_timestamp()
FROM unnest(%(tenants)s::text[], %(names)s::text[], %(keys)s::text[]) AS given (tenant, name, key)
WHERE NOT EXISTS (
    SELECT
    FROM tenantqueue_session s
    WHERE s.kind = %(kind)s::text AND s.gate_key = given.key
        -- not redundant: it keeps the planner from reading all of them
        AND s.gate_key = ANY (%(keys)s::text[])
)
ON CONFLICT DO NOTHING
RETURNING id
