-- The airline's planes by the years in which they were made. Index: flights_flight_day.
SELECT
    plane.year / 5 * 5 || '–' || plane.year / 5 * 5 + 4 AS built,
    count(DISTINCT plane.tail_number) AS planes,
    count(*) AS flights,
    round(avg(plane.seats)) ::integer AS seats,
    round(avg(flight.departure_delay), 1)::float8 AS departure_delay,
    round(
        100.0 * count(*) FILTER (WHERE flight.departure_delay IS NULL) / count(*), 1
    )::float8 AS cancelled
FROM flights_flight AS flight
JOIN flights_plane AS plane ON plane.tail_number = flight.tail_number
WHERE flight.airline_id = %(airline)s AND plane.year IS NOT NULL
GROUP BY plane.year / 5
ORDER BY plane.year / 5
