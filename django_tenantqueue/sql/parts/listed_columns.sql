-- What a list reads of a job `j`. `fits`: it passes the filters of its columns. Texts are looked
-- for in its task, its labels or its arguments. Arguments of 8 kB and more are left out: each of
-- them would be read from another table. What is expensive to read comes last.
        j.id, j.state, j.queue_id, j.task,
        (
            (%(created_from)s::timestamptz IS NULL OR j.created_at >= %(created_from)s::timestamptz)
            AND (%(created_to)s::timestamptz IS NULL OR j.created_at < %(created_to)s::timestamptz)
            AND (
                %(ended_from)s::timestamptz IS NULL
                OR j.finished_at >= %(ended_from)s::timestamptz
            )
            AND (%(ended_to)s::timestamptz IS NULL OR j.finished_at < %(ended_to)s::timestamptz)
            AND (%(priority)s::integer IS NULL OR j.priority = %(priority)s::integer)
            AND (%(worker)s::bigint IS NULL OR j.worker_id = %(worker)s::bigint)
            AND (%(creator)s::text IS NULL OR j.created_by = %(creator)s::text)
            AND (%(session)s::text IS NULL OR j.session_key = %(session)s::text)
            AND (%(limit_user)s::text IS NULL OR j.limit_user = %(limit_user)s::text)
            AND (%(label)s::text IS NULL OR j.labels @> ARRAY[%(label)s::text])
            AND (%(argument)s::text IS NULL OR (j.args -> 'search') ? %(argument)s::text)
            AND (
                %(error)s::text IS NULL
                OR tenantqueue_error_class(j.errors) = %(error)s::text
                OR tenantqueue_error_class(j.errors) LIKE %(error_end)s::text
            )
            AND (
                %(text)s::text IS NULL
                OR position(lower(%(text)s::text) IN lower(j.task)) > 0
                OR position(lower(%(text)s::text) IN lower(array_to_string(j.labels, ' '))) > 0
                OR (
                    pg_column_size(j.args) < 8192
                    AND position(lower(%(text)s::text) IN lower(j.args::text)) > 0
                )
            )
        ) IS TRUE AS fits
