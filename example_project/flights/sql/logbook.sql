-- What one plane did for the airline: one row. Index: flights_flight_plane.
SELECT
    coalesce(plane.manufacturer || ' ' || plane.model, 'not in the registry') AS model,
    count(*) AS flights,
    round(coalesce(sum(flight.air_time), 0) / 60.0, 1)::float8 AS hours,
    coalesce(sum(flight.distance) FILTER (WHERE flight.departure_delay IS NOT NULL), 0) AS miles,
    round(
        100.0 * count(*) FILTER (WHERE flight.arrival_delay > 15)
            / nullif(count(flight.arrival_delay), 0), 1
    )::float8 AS late
FROM flights_flight AS flight
LEFT JOIN flights_plane AS plane ON plane.tail_number = flight.tail_number
WHERE flight.tail_number = %(tail_number)s AND flight.airline_id = %(airline)s
GROUP BY plane.manufacturer, plane.model
