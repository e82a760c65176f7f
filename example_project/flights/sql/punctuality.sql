-- One month of the airline beside all others. Index: flights_flight_day for the airline; the
-- others are read in full.
SELECT
    count(*) FILTER (WHERE flight.airline_id = %(airline)s) AS flights,
    count(flight.arrival_delay) FILTER (WHERE flight.airline_id = %(airline)s) AS arrived,
    count(*) FILTER (
        WHERE flight.airline_id = %(airline)s AND flight.arrival_delay <= %(tolerance)s
    ) AS punctual,
    count(flight.arrival_delay) AS arrived_all,
    count(*) FILTER (WHERE flight.arrival_delay <= %(tolerance)s) AS punctual_all
FROM flights_flight AS flight
WHERE flight.day >= %(first)s AND flight.day < %(last)s
