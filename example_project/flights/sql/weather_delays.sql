-- Departures of one month by the weather in the hour for which they were scheduled.
-- Indexes: flights_flight_day, flights_weather_hour.
SELECT
    CASE %(measure)s
        WHEN 'wind' THEN width_bucket(weather.wind_speed, 0, 35, 7) * 5 - 5
        WHEN 'visibility' THEN floor(weather.visibility / 2) * 2
        ELSE CASE
            WHEN weather.precipitation = 0 THEN 0
            WHEN weather.precipitation < 0.05 THEN 1
            WHEN weather.precipitation < 0.2 THEN 2
            ELSE 3
        END
    END::integer AS bucket,
    count(*) AS flights,
    count(flight.departure_delay) AS departed,
    coalesce(sum(flight.departure_delay), 0) AS minutes,
    count(*) FILTER (WHERE flight.departure_delay > 15) AS late
FROM flights_flight AS flight
JOIN flights_weather AS weather
    ON weather.origin = flight.origin AND weather.hour = flight.hour
WHERE flight.airline_id = %(airline)s
    AND flight.day >= %(first)s AND flight.day < %(last)s
    AND CASE %(measure)s
        WHEN 'wind' THEN weather.wind_speed
        WHEN 'visibility' THEN weather.visibility
        ELSE weather.precipitation
    END IS NOT NULL
GROUP BY bucket
