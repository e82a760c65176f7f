-- Seats and miles flown on the airline's longest routes. Index: flights_flight_route.
SELECT
    flight.origin || ' → ' || flight.destination AS route,
    count(*) AS flights,
    sum(coalesce(plane.seats, 150)) AS seats,
    sum(coalesce(plane.seats, 150)::bigint * flight.distance) AS seat_miles
FROM flights_flight AS flight
LEFT JOIN flights_plane AS plane ON plane.tail_number = flight.tail_number
WHERE flight.airline_id = %(airline)s AND flight.departure_delay IS NOT NULL
GROUP BY flight.origin, flight.destination
ORDER BY seat_miles DESC, route
LIMIT 15
