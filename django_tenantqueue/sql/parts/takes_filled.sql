            (w.queues = '{}' OR filled.queue = ANY (w.queues))
            AND NOT filled.queue = ANY (w.exclude_queues)
            AND (w.tenants = '{}' OR filled.tenant = ANY (w.tenants))
