"""The year 2026 in five zones, from a table: neither zoneinfo nor the package has a part in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
STEP = timedelta(minutes=15)


def utc(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


OFFSETS: dict[str, list[tuple[datetime, int]]] = {
    "Europe/Berlin": [(START, 60), (utc(3, 29, 1), 120), (utc(10, 25, 1), 60)],
    "America/New_York": [(START, -300), (utc(3, 8, 7), -240), (utc(11, 1, 6), -300)],
    "Australia/Lord_Howe": [(START, 660), (utc(4, 4, 15), 630), (utc(10, 3, 15, 30), 660)],
    "America/Santiago": [(START, -180), (utc(4, 5, 3), -240), (utc(9, 6, 4), -180)],
    "Asia/Kolkata": [(START, 330)],
}
"""From when on clocks are ahead of UTC by how many minutes."""


def clock(zone: str, moment: datetime) -> datetime:
    """Return what the clocks of a zone show at a moment, without a zone."""
    minutes = [ahead for since, ahead in OFFSETS[zone] if since <= max(moment, START)][-1]
    return moment.replace(tzinfo=None) + timedelta(minutes=minutes)


def daily(zone: str, hour: int, minute: int) -> list[datetime]:
    """Return when a clock shows this time: once a day, the first time; after a gap, its end."""
    shown: dict[object, datetime] = {}
    before, moment = clock(zone, START - STEP), START
    while moment < END:
        now = clock(zone, moment)
        wanted = now.replace(hour=hour, minute=minute)
        if before < wanted <= now:
            shown.setdefault(wanted.date(), moment)
        before, moment = now, moment + STEP
    return list(shown.values())
