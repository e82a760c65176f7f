-- Jobs on the wrong side of their gate: `room` of those that can move belong inside, by (priority,
-- run_at, id).
member AS MATERIALIZED (
    SELECT
        both_sides.*,
        row_number() OVER (
            PARTITION BY both_sides.key, both_sides.must_leave
            ORDER BY both_sides.priority, both_sides.run_at, both_sides.id
        ) AS nth
    FROM (
        SELECT
            inside.key, inside.id, inside.priority, inside.run_at, inside.state, inside.held_by,
            inside.must_leave, true AS is_inside
        FROM inside
        WHERE inside.movable OR inside.must_leave
        UNION ALL
        SELECT
            line.key, line.id, line.priority, line.run_at, 'held', %(kind)s::text, false, false
        FROM line
    ) both_sides
), misplaced AS MATERIALIZED (
    SELECT member.*
    FROM member
    JOIN room ON room.key = member.key
    WHERE member.must_leave OR member.is_inside <> (member.nth <= room.places)
)
