-- The planes that the airline has flown. Index: flights_flight_day.
SELECT DISTINCT tail_number FROM flights_flight
WHERE airline_id = %(airline)s AND tail_number IS NOT NULL
ORDER BY tail_number
