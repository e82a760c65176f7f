-- How a plane's late departure is felt by its later departures of the following hours: every flight
-- of one month joined with the flights that follow it. Index: flights_flight_plane.
SELECT
    CASE
        WHEN flight.departure_delay <= 0 THEN 0
        WHEN flight.departure_delay <= 15 THEN 1
        WHEN flight.departure_delay <= 60 THEN 2
        WHEN flight.departure_delay <= 180 THEN 3
        ELSE 4
    END AS bucket,
    count(DISTINCT flight.id) AS flights,
    count(*) AS pairs,
    coalesce(sum(later.departure_delay), 0) AS minutes,
    count(later.departure_delay) AS departed,
    count(*) FILTER (WHERE later.departure_delay > 15) AS late
FROM flights_flight AS flight
JOIN flights_flight AS later
    ON later.tail_number = flight.tail_number
    AND later.scheduled > flight.scheduled
    AND later.scheduled <= flight.scheduled + make_interval(hours => %(hours)s)
WHERE (%(everyone)s OR flight.airline_id = %(airline)s)
    AND flight.day >= %(first)s AND flight.day < %(last)s
    AND flight.departure_delay IS NOT NULL
GROUP BY bucket
