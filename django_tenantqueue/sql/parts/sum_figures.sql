    sum(f.started)::bigint, sum(f.succeeded)::bigint, sum(f.failed)::bigint, sum(f.retried)::bigint,
    sum(f.cancelled)::bigint, sum(f.wait_seconds), sum(f.run_seconds),
    tenantqueue_sum_counts(f.waits), tenantqueue_sum_counts(f.runs)
