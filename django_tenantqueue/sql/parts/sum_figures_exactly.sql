        sum(f.started)::bigint AS started, sum(f.succeeded)::bigint AS succeeded,
        sum(f.failed)::bigint AS failed, sum(f.retried)::bigint AS retried,
        sum(f.cancelled)::bigint AS cancelled,
        sum(round(f.wait_seconds * 1000000)::bigint)::bigint AS wait_micros,
        sum(round(f.run_seconds * 1000000)::bigint)::bigint AS run_micros,
        tenantqueue_sum_counts(f.waits) AS waits, tenantqueue_sum_counts(f.runs) AS runs
