            -- the burst of queue `q`; also in burst_size(), and for tasks in 0001_task_views.sql
            coalesce(q.burst, greatest(1, ceil(q.max_per_second)))::float8
