-- How many starts the rate of `queue` has left; NULL without a rate.
            CASE
                WHEN queue.max_per_second IS NOT NULL
                THEN floor(
                    queue.burst -
-- include: debt
                )::bigint
            END
