-- How many of the jobs that can move belong inside each gate.
room AS MATERIALIZED (
    SELECT
        gate.key,
        gate.capacity - count(inside.id) FILTER (WHERE NOT inside.movable AND NOT inside.must_leave)
            AS places
    FROM gate
    LEFT JOIN inside ON inside.key = gate.key
    GROUP BY gate.key, gate.capacity
)
