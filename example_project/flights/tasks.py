"""The reports. Each is about the current tenant: the airline that requested it."""

import time
from typing import Any

from django_tenantqueue import Permanent, Priority, State, current_job, get_tenant, task
from django_tenantqueue.models import ConcurrentJobMonitor

from . import carbon
from .plans import EXPORTS, HEAVY, LOGBOOKS, REPORTS
from .recording import recorded, step
from .tables import MONTHS, mean, percent, period, query, table

Result = dict[str, Any]

FEW = 10
"""Routes and airports with fewer flights a year are left out."""
ORIGINS = ("EWR", "JFK", "LGA")
"""Airports that accept exports."""
BUSIEST = 15
"""Planes in the summary of all logbooks."""
WEATHER_BUCKETS = {
    "wind": lambda n: f"{n}–{n + 5} mph" if n < 35 else "35 mph and more",
    "visibility": lambda n: f"{n}–{n + 2} miles" if n < 10 else "10 miles",
    "rain": lambda n: ("dry", "drizzle", "rain", "heavy rain")[n],
}
LATENESS = ("on time", "up to 15 min", "15–60 min", "1–3 hours", "more than 3 hours")


def _check_month(month: int | None) -> None:
    if month is not None and not 1 <= month <= 12:
        raise Permanent(f"There is no month {month!r}.")


@task(queue=REPORTS, priority=Priority.USER)
@recorded
def route_delays(month: int | None = None, airport: str = "") -> Result:
    """Delays per route."""
    _check_month(month)
    airport = airport.strip().upper()
    if airport:
        step(0, 2, f"looking up {airport}")
        ((known,),) = query("airport_exists", airport=airport)
        if not known:
            # A retry would not help.
            raise Permanent(f"There is no airport {airport!r}.")
    step(1, 2, "reading flights")
    rows = query("route_delays", airline=get_tenant(), airport=airport, least=FEW, **period(month))
    step(2, 2, "done")
    worst = f"Worst: {rows[0][0]}, {rows[0][4]} minutes late on average." if rows else ""
    return table(
        [
            ("Route", "text"),
            ("Destination", "text"),
            ("Flights", ""),
            ("Departure delay", "min"),
            ("Arrival delay", "min"),
            ("Cancelled", "%"),
        ],
        rows,
        summary=worst,
        draw=[4],
    )


@task(queue=REPORTS, priority=Priority.USER)
@recorded
def worst_days(days: int = 20) -> Result:
    """The days with the longest delays, and their weather."""
    if not 1 <= days <= 100:
        raise Permanent(f"days={days}: it must be from 1 to 100.")
    step(0, 1, "reading a year of flights and weather")
    rows = query("worst_days", airline=get_tenant(), days=days)
    step(1, 1, "done")
    return table(
        [
            ("Day", "text"),
            ("Flights", ""),
            ("Departure delay", "min"),
            ("Late by an hour", ""),
            ("Cancelled", ""),
            ("Wind", "mph"),
            ("Rain in an hour", "in"),
        ],
        rows,
        summary=f"The worst day of 2013 was {rows[0][0]}." if rows else "",
        draw=[2],
    )


@task(queue=REPORTS, priority=Priority.USER)
@recorded
def weather_delays(measure: str = "wind") -> Result:
    """Departure delays by wind, visibility or rain."""
    name_of = WEATHER_BUCKETS.get(measure)
    if name_of is None:
        raise Permanent(f"measure={measure!r}: it must be one of {', '.join(WEATHER_BUCKETS)}.")
    sums: dict[int, list[int]] = {}
    for month, name in enumerate(MONTHS, start=1):
        step(month - 1, 12, name)
        for bucket, *numbers in query(
            "weather_delays", airline=get_tenant(), measure=measure, **period(month)
        ):
            before = sums.get(bucket, [0, 0, 0, 0])
            sums[bucket] = [a + b for a, b in zip(before, numbers, strict=True)]
    step(12, 12, "done")
    rows = [
        (
            name_of(bucket),
            flights,
            mean(minutes, departed),
            percent(late, departed),
            percent(flights - departed, flights),
        )
        for bucket, (flights, departed, minutes, late) in sorted(sums.items())
    ]
    return table(
        [
            (measure.capitalize(), "text"),
            ("Flights", ""),
            ("Departure delay", "min"),
            ("Late", "%"),
            ("Cancelled", "%"),
        ],
        rows,
        summary="All departures, by the weather in the scheduled hour.",
        draw=[2],
    )


@task(queue=REPORTS, priority=Priority.USER)
@recorded
def punctuality(tolerance: int = 15) -> Result:
    """Arrivals within a tolerance, month by month, beside all other airlines."""
    if not 0 <= tolerance <= 180:
        raise Permanent(f"tolerance={tolerance}: it must be from 0 to 180 minutes.")
    rows = []
    for month, name in enumerate(MONTHS, start=1):
        step(month - 1, 12, name)
        ((flights, arrived, punctual, arrived_all, punctual_all),) = query(
            "punctuality", airline=get_tenant(), tolerance=tolerance, **period(month)
        )
        rows.append(
            (name[:3], flights, percent(punctual, arrived), percent(punctual_all, arrived_all))
        )
    step(12, 12, "done")
    ahead = sum(1 for row in rows if (row[2] or 0) > (row[3] or 0))
    return table(
        [("Month", "text"), ("Flights", ""), ("Punctual", "%"), ("All airlines", "%")],
        rows,
        summary=f"More punctual than the market in {ahead} of 12 months "
        f"(arrival within {tolerance} minutes).",
        draw=[2, 3],
        kind="lines",
    )


@task(queue=REPORTS, priority=Priority.USER)
@recorded
def airport_ranking() -> Result:
    """Destinations compared with the competitors there."""
    step(0, 1, "comparing with every competitor")
    rows = query("airport_ranking", airline=get_tenant(), least=FEW)
    step(1, 1, "done")
    behind = sum(1 for row in rows if (row[5] or 0) > 0)
    return table(
        [
            ("Airport", "text"),
            ("Name", "text"),
            ("Flights", ""),
            ("Arrival delay", "min"),
            ("Competitors' delay", "min"),
            ("Difference", "min"),
            ("Competitors", ""),
        ],
        rows,
        summary=f"Later than the competitors at {behind} of {len(rows)} airports.",
        draw=[5],
    )


@task(queue=REPORTS, priority=Priority.USER)
@recorded
def fleet_age() -> Result:
    """Delays by the age of the planes."""
    step(0, 1, "joining flights with planes")
    rows = query("fleet_age", airline=get_tenant())
    step(1, 1, "done")
    return table(
        [
            ("Built", "text"),
            ("Planes", ""),
            ("Flights", ""),
            ("Seats", ""),
            ("Departure delay", "min"),
            ("Cancelled", "%"),
        ],
        rows,
        summary="Only planes with a known year of manufacture.",
        draw=[4],
    )


@task(
    queue=REPORTS,
    priority=Priority.USER,
    max_attempts=4,
    retry_when=carbon.ServiceDown,
    backoff=0.5,
)
@recorded
def carbon_cost(outages: int = 0) -> Result:
    """Carbon per route at today's price, from an external service."""
    step(0, 2, "requesting today's carbon price")
    price = carbon.price_per_tonne(attempt=_attempt(), outages=outages)
    step(1, 2, "adding up seats and miles")
    rows = [
        (
            route,
            flights,
            int(seats),
            round(tonnes := float(miles) * carbon.GRAMS_PER_SEAT_MILE / 1e6),
            round(tonnes * price),
        )
        for route, flights, seats, miles in query("carbon", airline=get_tenant())
    ]
    step(2, 2, "done")
    return table(
        [
            ("Route", "text"),
            ("Flights", ""),
            ("Seats", ""),
            ("CO₂", "t"),
            ("Cost", "$"),
        ],
        rows,
        summary=f"At ${price:.2f} a tonne, for the fifteen routes with the highest emissions.",
        draw=[3],
    )


def _attempt() -> int:
    try:
        return current_job().attempt
    except LookupError:
        return 1


@task(queue=HEAVY, priority=Priority.USER_LOW)
@recorded
def knock_on(hours: int = 24, everyone: bool = False) -> Result:
    """How a late departure makes the plane's next ones late: a self-join of all flights."""
    if not 1 <= hours <= 168:
        raise Permanent(f"hours={hours}: it must be from 1 to 168.")
    sums: dict[int, list[int]] = {}
    for month, name in enumerate(MONTHS, start=1):
        step(month - 1, 12, name)
        for bucket, *numbers in query(
            "knock_on", airline=get_tenant(), hours=hours, everyone=everyone, **period(month)
        ):
            before = sums.get(bucket, [0] * 5)
            sums[bucket] = [a + int(b) for a, b in zip(before, numbers, strict=True)]
    step(12, 12, "done")
    rows = [
        (LATENESS[bucket], flights, pairs, mean(minutes, departed), percent(late, departed))
        for bucket, (flights, pairs, minutes, departed, late) in sorted(sums.items())
    ]
    return table(
        [
            ("Departure", "text"),
            ("Flights", ""),
            ("Later flights", ""),
            ("Their delay", "min"),
            ("Late", "%"),
        ],
        rows,
        summary=f"Departures of the same plane from New York in the following {hours} hours.",
        draw=[3],
    )


@task(queue=LOGBOOKS, priority=Priority.SYSTEM_LOW)
@recorded
def logbook(tail_number: str) -> Result:
    """What one plane did in the year: a detail of the monitor in logbooks.py."""
    rows = query("logbook", airline=get_tenant(), tail_number=tail_number)
    if not rows:
        raise Permanent(f"{get_tenant()} has no plane {tail_number!r}.")
    ((model, flights, hours, miles, late),) = rows
    return {
        "tail_number": tail_number,
        "model": model,
        "flights": flights,
        "hours": hours,
        "miles": miles,
        "late": late,
    }


@task(queue=LOGBOOKS, priority=Priority.USER)
@recorded
def sum_up_logbooks() -> Result:
    """The planes that flew most, from all logbooks of a monitor: its callback."""
    monitor = ConcurrentJobMonitor.objects.get(anchor_id=current_job().id)
    written = monitor.details().filter(state=State.SUCCESS)
    books = sorted((job.result for job in written), key=lambda book: -book["hours"])
    shown = ("tail_number", "model", "flights", "hours", "miles", "late")
    return table(
        [
            ("Plane", "text"),
            ("Model", "text"),
            ("Flights", ""),
            ("Flight time", "h"),
            ("Distance", "mi"),
            ("Late", "%"),
        ],
        [tuple(book[name] for name in shown) for book in books[:BUSIEST]],
        summary=f"{len(books):,} logbooks. These planes flew the most hours.",
        draw=[3],
    )


@task(queue=EXPORTS, priority=Priority.USER)
def export_flights(airport: str, seconds: float) -> Result:
    """Send the year's flights to an airport, which takes `seconds`."""
    if airport not in ORIGINS:
        raise Permanent(f"Airport {airport!r} accepts no exports: use one of {', '.join(ORIGINS)}.")
    for month, name in enumerate(MONTHS, start=1):
        step(month - 1, 12, f"sending {name}")
        time.sleep(seconds / 12)
    step(12, 12, "done")
    return {"airport": airport, "months": 12}
