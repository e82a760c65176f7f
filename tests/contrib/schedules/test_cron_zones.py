"""Cron ticks where clocks are turned, in every zone, against a look at each minute."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, available_timezones

import pytest

from django_tenantqueue.contrib.schedules.recurrence import EPOCH, Recurrence

START, END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
ALL_MINUTES, ALL_HOURS = range(60), range(24)
EXPRESSIONS = {
    "* * * * *": (ALL_MINUTES, ALL_HOURS),
    "*/30 * * * *": (range(0, 60, 30), ALL_HOURS),
    "15 * * * *": ((15,), ALL_HOURS),
    "0 */6 * * *": ((0,), range(0, 24, 6)),
    "*/7 2 * * *": (range(0, 60, 7), (2,)),
    "* 1 * * *": (ALL_MINUTES, (1,)),
    "0 0 * * *": ((0,), (0,)),
    "30 1 * * *": ((30,), (1,)),
    "45 1 * * *": ((45,), (1,)),
    "15 2 * * *": ((15,), (2,)),
    "0,30 0-3 * * *": ((0, 30), range(4)),
    "10 3,23 * * *": ((10,), (3, 23)),
}


def offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    found = moment.astimezone(zone).utcoffset()
    assert found is not None
    return found


def turns_of(zone: ZoneInfo) -> Iterator[tuple[datetime, timedelta, timedelta]]:
    """Yield when its clocks are turned, with the offsets before and after."""
    day = START
    while day < END:
        first, last = day, day + DAY
        before, after = offset(first, zone), offset(last, zone)
        if before != after:
            while last - first > MINUTE:
                middle = first + (last - first) // MINUTE // 2 * MINUTE
                first, last = (middle, last) if offset(middle, zone) == before else (first, middle)
            yield last, before, after
        day += DAY


def all_turns() -> dict[tuple[datetime, timedelta, timedelta], ZoneInfo]:
    found: dict[tuple[datetime, timedelta, timedelta], ZoneInfo] = {}
    for name in sorted(available_timezones()):
        for turn in turns_of(ZoneInfo(name)):
            found.setdefault(turn, ZoneInfo(name))
    return found


def expected(text: str, zone: ZoneInfo, since: datetime, until: datetime) -> list[datetime]:
    """Return the ticks after `since` and up to `until`, by a look at each minute."""
    minutes, hours = (frozenset(field) for field in EXPRESSIONS[text])
    is_fixed = not any(field.startswith("*") for field in text.split()[:2])
    ticks = []
    previous = (since - DAY).astimezone(zone).replace(tzinfo=None)
    seen = set()
    moment = since - DAY
    while moment < until:
        moment += MINUTE
        wall = moment.astimezone(zone).replace(tzinfo=None)
        skipped = previous + MINUTE
        comes = wall.minute in minutes and wall.hour in hours
        if is_fixed:
            comes = comes and wall not in seen
            while skipped < wall:  # a gap: its times come at its end
                comes = comes or (skipped.minute in minutes and skipped.hour in hours)
                skipped += MINUTE
            seen.add(wall)
        if comes and moment > since:
            ticks.append(moment)
        previous = wall
    return ticks


@pytest.mark.heavy
def test_ticks_are_those_of_the_clock_wherever_clocks_are_turned() -> None:
    turns = all_turns()
    shifts = {after - before for _, before, after in turns}
    assert shifts >= {timedelta(minutes=m) for m in (-60, -30, 30, 60)}
    for (turn, _, _), zone in turns.items():
        since, until = turn - timedelta(hours=8), turn + timedelta(hours=8)
        for text in EXPRESSIONS:
            recurrence = Recurrence("cron", text, zone.key, EPOCH)
            ticks = takewhile(until.__ge__, recurrence.ticks(since))
            assert list(ticks) == expected(text, zone, since, until), (zone.key, text)


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("zone", ["Australia/Lord_Howe", "Europe/Berlin"])
def test_tick_that_follows_another_is_the_next_one_of_all(text: str, zone: str) -> None:
    for turn, _, _ in islice(turns_of(ZoneInfo(zone)), 2):
        since, until = turn - timedelta(hours=5), turn + timedelta(hours=5)
        recurrence = Recurrence("cron", text, zone, EPOCH)
        found = []
        tick = recurrence.next(since)
        while tick is not None and tick <= until:
            found.append(tick)
            tick = recurrence.next(tick)

        assert found == expected(text, ZoneInfo(zone), since, until)


def test_six_hours_are_kept_where_clocks_turn_by_half_an_hour() -> None:
    recurrence = Recurrence("cron", "0 */6 * * *", "Australia/Lord_Howe", EPOCH)
    zone = ZoneInfo("Australia/Lord_Howe")
    since = datetime(2026, 10, 3, 23, 59, tzinfo=zone)

    ticks = takewhile(lambda tick: tick < since + DAY, recurrence.ticks(since))

    assert [tick.astimezone(zone).hour for tick in ticks] == [0, 6, 12, 18]
