-- Delays of the airline's routes, the worst first; routes flown a few times only are left out.
-- Indexes: flights_flight_day for a month, flights_flight_route for one airport.
SELECT
    flight.origin || ' → ' || flight.destination AS route,
    coalesce(airport.name, 'unknown airport') AS destination,
    count(*) AS flights,
    round(avg(flight.departure_delay), 1)::float8 AS departure_delay,
    round(avg(flight.arrival_delay), 1)::float8 AS arrival_delay,
    round(
        100.0 * count(*) FILTER (WHERE flight.departure_delay IS NULL) / count(*), 1
    )::float8 AS cancelled
FROM flights_flight AS flight
LEFT JOIN flights_airport AS airport ON airport.code = flight.destination
WHERE flight.airline_id = %(airline)s
    AND flight.day >= %(first)s AND flight.day < %(last)s
    AND (%(airport)s = '' OR %(airport)s IN (flight.origin, flight.destination))
GROUP BY flight.origin, flight.destination, airport.name
HAVING count(*) >= %(least)s
ORDER BY avg(flight.arrival_delay) DESC NULLS LAST, route
LIMIT 25
