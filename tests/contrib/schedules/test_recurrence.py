"""When schedules are due, also where clocks are turned: a year in five zones against a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_tenantqueue.contrib.schedules.recurrence import (
    EPOCH,
    Cron,
    Every,
    Recurrence,
    interval_text,
    read_interval,
    read_once,
    read_when,
)
from django_tenantqueue.exceptions import InvalidOption

from ...calls.year import OFFSETS, daily

YEAR = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)


def times(kind: str, expression: str, zone: str = "UTC", **span: Any) -> Recurrence:
    return Recurrence(kind, expression, zone, EPOCH, **span)


def year_of(expression: str, zone: str) -> list[datetime]:
    """Return the ticks of 2026, one after another, as a leader asks for them."""
    recurrence = times("cron", expression, zone)
    found = []
    tick = recurrence.next(YEAR - timedelta(microseconds=1))
    while tick is not None and tick < END:
        found.append(tick)
        tick = recurrence.next(tick)
    return found


# zone, a time in the gap, the day of the gap, what it becomes; the day of the overlap, a time in it
ZONES = [
    ("Europe/Berlin", "02:30", "03-29", "03:00+0200", "10-25", "02:30+0200"),
    ("America/New_York", "02:30", "03-08", "03:00-0400", "11-01", "01:30-0400"),
    ("Australia/Lord_Howe", "02:15", "10-04", "02:30+1100", "04-05", "01:45+1100"),
    ("America/Santiago", "00:30", "09-06", "01:00-0300", "04-04", "23:30-0300"),
    ("Asia/Kolkata", None, None, None, None, None),
]


def local(ticks: list[datetime], zone: str) -> dict[str, list[str]]:
    days: dict[str, list[str]] = {}
    for tick in ticks:
        there = tick.astimezone(ZoneInfo(zone))
        days.setdefault(f"{there:%m-%d}", []).append(f"{there:%H:%M%z}")
    return days


@pytest.mark.parametrize(("zone", "time", "day", "becomes", "_day", "_time"), ZONES)
def test_daily_tick_comes_once_when_its_hour_does_not_come(
    zone: str, time: str | None, day: str | None, becomes: str | None, _day: Any, _time: Any
) -> None:
    hour, minute = (time or "02:30").split(":")
    ticks = year_of(f"{int(minute)} {int(hour)} * * *", zone)
    days = local(ticks, zone)

    assert len(ticks) == 365
    for shown, found in days.items():
        assert len(found) == 1, shown
        if shown != day:
            assert found[0].startswith(time or "02:30"), shown
    if day is not None:
        assert days[day] == [becomes]


@pytest.mark.parametrize(("zone", "_time", "_day", "_becomes", "day", "first"), ZONES)
def test_daily_tick_comes_once_when_its_hour_comes_twice(
    zone: str, _time: Any, _day: Any, _becomes: Any, day: str | None, first: str | None
) -> None:
    hour, minute = (first or "02:30")[:5].split(":")
    days = local(year_of(f"{int(minute)} {int(hour)} * * *", zone), zone)

    assert {len(found) for found in days.values()} == {1}
    if day is not None:
        assert days[day] == [first]


@pytest.mark.parametrize("zone", OFFSETS)
def test_ticks_stay_apart_as_they_are_when_clocks_are_turned(zone: str) -> None:
    recurrence = times("cron", "*/30 * * * *", zone)
    for turned, _ahead in OFFSETS[zone]:
        ticks = list(islice(recurrence.ticks(turned - timedelta(days=1, microseconds=1)), 2 * 48))

        assert ticks[0] == turned - timedelta(days=1)
        assert {later - earlier for earlier, later in pairwise(ticks)} == {timedelta(minutes=30)}


@pytest.mark.parametrize("zone", OFFSETS)
@pytest.mark.parametrize(("hour", "minute"), [(0, 30), (1, 45), (2, 15), (2, 30), (23, 30)])
def test_ticks_of_a_year_are_those_of_a_table(zone: str, hour: int, minute: int) -> None:
    assert year_of(f"{minute} {hour} * * *", zone) == daily(zone, hour, minute)


def test_two_times_of_a_gap_are_one_tick() -> None:
    found = local(year_of("0,30 2 * * *", "Europe/Berlin"), "Europe/Berlin")

    assert found["03-29"] == ["03:00+0200"]
    assert found["03-30"] == ["02:00+0200", "02:30+0200"]
    assert found["10-25"] == ["02:00+0200", "02:30+0200"]


def test_tick_is_not_repeated_when_it_is_asked_for_in_the_second_of_two_hours() -> None:
    second = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10 for the second time

    tick = times("cron", "30 2 * * *", "Europe/Berlin").next(second)

    assert tick == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "moment"),
    [
        ("2026-03-29 02:30", "2026-03-29T01:00:00+00:00"),
        ("2026-10-25 02:30", "2026-10-25T00:30:00+00:00"),
        ("2026-10-25 02:30+01:00", "2026-10-25T01:30:00+00:00"),
        ("2026-07-01T12:00:30", "2026-07-01T10:00:30+00:00"),
    ],
)
def test_single_time_is_read_in_the_zone(expression: str, moment: str) -> None:
    assert read_once(expression, ZoneInfo("Europe/Berlin")).isoformat() == moment
    recurrence = times("once", expression, "Europe/Berlin")
    assert [tick.isoformat() for tick in recurrence.ticks(YEAR)] == [moment]
    assert recurrence.next(END) is None


@pytest.mark.parametrize(
    ("text", "seconds", "shown"),
    [
        ("90s", 90, "1m 30s"),
        ("15m", 900, "15m"),
        ("1h 30m", 5400, "1h 30m"),
        ("1D2H", 93600, "1d 2h"),
    ],
)
def test_interval_is_read(text: str, seconds: int, shown: str) -> None:
    assert read_interval(text) == timedelta(seconds=seconds)
    assert interval_text(read_interval(text)) == shown


@pytest.mark.parametrize(
    ("kind", "expression", "zone", "said"),
    [
        ("cron", "", "UTC", "is not a cron expression"),
        ("cron", "@daily", "UTC", "is not a cron expression"),
        ("cron", "* * * * * *", "UTC", "is not a cron expression"),
        ("cron", "61 * * * *", "UTC", "Bad minute"),
        ("cron", "0 0 30 2 *", "UTC", "is not a cron expression"),
        ("cron", "0 0 * * 9", "UTC", "Bad day-of-week"),
        ("cron", "\x00 * * * *", "UTC", "is not a cron expression"),
        ("cron", "0 0 " + "1," * 200 + "1 * *", "UTC", "at most 200"),
        ("interval", "", "UTC", "is not an interval"),
        ("interval", "0s", "UTC", "is not an interval"),
        ("interval", "-5m", "UTC", "is not an interval"),
        ("interval", "99999d", "UTC", "is not an interval"),
        ("interval", "٣m", "UTC", "is not an interval"),
        ("once", "tomorrow", "UTC", "is not a date and time"),
        ("once", "2026-02-30 12:00", "UTC", "is not a date and time"),
        ("once", "0001-01-01 00:00", "Asia/Tokyo", "is not a date and time"),
        ("once", "9999-12-31 23:59", "America/New_York", "is not a date and time"),
        ("cron", "0 0 * * *", "Mars/Olympus", "is not a time zone"),
        ("cron", "0 0 * * *", "../../etc/passwd", "is not a time zone"),
        ("cron", "0 0 * * *", "a\x00b", "is not a time zone"),
        ("yearly", "0 0 * * *", "UTC", "must be one of"),
    ],
)
def test_expression_is_refused_when_it_says_nothing(
    kind: str, expression: str, zone: str, said: str
) -> None:
    with pytest.raises(InvalidOption, match=said):
        times(kind, expression, zone).check()


def test_ticks_keep_to_their_span() -> None:
    start, end = datetime(2026, 5, 1, 10, 0, 30, tzinfo=UTC), datetime(2026, 5, 1, 11, tzinfo=UTC)
    span = {"starts_at": start, "ends_at": end}

    assert list(times("interval", "20m", **span).ticks(YEAR)) == [
        start + n * timedelta(minutes=20) for n in range(3)
    ]
    found = [f"{tick:%H:%M}" for tick in times("cron", "*/30 * * * *", **span).ticks(YEAR)]
    assert found == ["10:30", "11:00"]


def test_interval_counts_from_the_same_moment_whenever_it_is_asked() -> None:
    recurrence = times("interval", "7m")
    first = list(islice(recurrence.ticks(YEAR), 50))

    assert list(islice(recurrence.ticks(first[9]), 40)) == first[10:]


@pytest.mark.parametrize(
    ("kind", "expression"),
    [("cron", "*/5 * * * *"), ("cron", "0 4 * * *"), ("cron", "0 0 1 1 *"), ("interval", "7m")],
)
@pytest.mark.parametrize("hours", [1, 30, 24 * 70])
def test_latest_tick_is_the_last_of_all(kind: str, expression: str, hours: int) -> None:
    recurrence = times(kind, expression)
    tick = recurrence.next(YEAR - timedelta(microseconds=1))
    assert tick is not None
    now = tick + timedelta(hours=hours, seconds=1)
    walked = [tick, *takewhile(lambda found: found <= now, recurrence.ticks(tick))]

    assert recurrence.latest(tick, now) == walked[-1]


def test_declared_times_are_read() -> None:
    assert read_when("t", "0 3 * * *") == Cron("0 3 * * *")
    assert read_when("t", Every(hours=1, minutes=30)).expression == "1h 30m"
    for wrong in (5, timedelta(minutes=5), Every(), Every(minutes=-1)):
        with pytest.raises(InvalidOption):
            read_when("t", wrong)
    with pytest.raises(InvalidOption, match="not a time zone"):
        read_when("t", Cron("0 3 * * *", time_zone="nowhere"))
