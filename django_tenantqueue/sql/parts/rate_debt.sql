                -- starts that the rate has not made up for; none after the clock was set back
                coalesce(
                    (
                        SELECT greatest(
                            0,
                            least(rate.debt, queue.burst) - queue.max_per_second * greatest(
                                0, extract(epoch FROM queue.as_of - rate.as_of)::float8
                            )
                        )
                        FROM tenantqueue_queuerate rate
                        WHERE rate.queue_id = queue.id
                            AND rate.as_of <= queue.as_of + interval '1 second'
                    ),
                    0
                )
