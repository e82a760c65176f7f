-- Where the airline arrives later, or earlier, than its competitors at the same airport.
-- Indexes: flights_flight_route, flights_flight_destination.
WITH own AS (
    SELECT destination, count(*) AS flights, avg(arrival_delay) AS delay
    FROM flights_flight
    WHERE airline_id = %(airline)s
    GROUP BY destination
    HAVING count(arrival_delay) >= %(least)s
), market AS (
    SELECT destination, avg(arrival_delay) AS delay, count(DISTINCT airline_id) AS airlines
    FROM flights_flight
    WHERE airline_id <> %(airline)s AND destination IN (SELECT destination FROM own)
    GROUP BY destination
)
SELECT
    own.destination,
    coalesce(airport.name, 'unknown airport') AS name,
    own.flights,
    round(own.delay, 1)::float8 AS delay,
    round(market.delay, 1)::float8 AS market_delay,
    round(own.delay - market.delay, 1)::float8 AS difference,
    coalesce(market.airlines, 0) AS competitors
FROM own
LEFT JOIN market USING (destination)
LEFT JOIN flights_airport AS airport ON airport.code = own.destination
ORDER BY own.delay - market.delay DESC NULLS LAST, own.destination
