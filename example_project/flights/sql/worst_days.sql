-- The days on which the airline's passengers waited longest in all. Index: flights_flight_day.
SELECT
    to_char(flight.day, 'Dy DD Mon') AS day,
    count(*) AS flights,
    round(avg(flight.departure_delay), 1)::float8 AS departure_delay,
    count(*) FILTER (WHERE flight.departure_delay > 60) AS late_by_an_hour,
    count(*) FILTER (WHERE flight.departure_delay IS NULL) AS cancelled,
    round(max(weather.wind_speed)::numeric, 0)::float8 AS wind,
    round(max(weather.precipitation)::numeric, 2)::float8 AS rain
FROM flights_flight AS flight
LEFT JOIN LATERAL (
    SELECT max(w.wind_speed) AS wind_speed, max(w.precipitation) AS precipitation
    FROM flights_weather AS w
    WHERE w.origin = flight.origin AND w.hour = flight.hour
) AS weather ON true
WHERE flight.airline_id = %(airline)s
GROUP BY flight.day
HAVING count(flight.departure_delay) > 0
ORDER BY avg(flight.departure_delay) DESC, flight.day
LIMIT %(days)s
