        -- what a worker has to know of a job: the first fields of ClaimedJob, in their order
        job.id, job.claim_seq, job.queue_id, job.lane, job.is_async, job.attempt, job.max_attempts,
        job.task, job.source_type, job.source_id, job.source_method, job.args::text,
        job.timeout_seconds, job.hard_timeout_seconds, job.expires_at, job.context::text,
