-- What a list reads of a job `j`. `fits`: it has the text in its task, its labels or its arguments,
-- if there is one. Arguments of 8 kB and more are not looked at: each of them would be read from
-- another table.
        j.id, j.state, j.queue_id, j.task,
        (
            %(text)s::text IS NULL
            OR position(lower(%(text)s::text) IN lower(j.task)) > 0
            OR position(lower(%(text)s::text) IN lower(array_to_string(j.labels, ' '))) > 0
            OR (
                pg_column_size(j.args) < 8192
                AND position(lower(%(text)s::text) IN lower(j.args::text)) > 0
            )
        ) AS fits
