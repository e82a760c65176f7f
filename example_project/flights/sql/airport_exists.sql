-- Whether any flight uses an airport. Index: flights_flight_destination.
SELECT EXISTS (SELECT FROM flights_airport WHERE code = %(airport)s)
    OR EXISTS (SELECT FROM flights_flight WHERE destination = %(airport)s)
