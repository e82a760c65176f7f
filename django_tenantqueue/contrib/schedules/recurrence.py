"""Ticks of a schedule: by a cron expression, at an interval, or once.

A tick is a moment at which a schedule enqueues its job. All ticks are aware, in UTC.

When clocks change, cron follows Debian. An expression with a fixed minute and hour has one tick a
day: the first one in a repeated hour, and the end of the gap for a skipped hour. Other expressions
have ticks in both of the repeated hours, and none in the gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ...exceptions import InvalidOption
from ...settings import TEN_YEARS
from ...states import EARLIEST, LATEST

CRON, INTERVAL, ONCE = "cron", "interval", "once"
KINDS = (CRON, INTERVAL, ONCE)
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Start of intervals: an interval of an hour ticks at the full hour of UTC."""
LONGEST_INTERVAL = timedelta(seconds=TEN_YEARS)
LONGEST_EXPRESSION = 200
CRONTAB = {"minute", "hour", "day_of_month", "month_of_year", "day_of_week"}
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_INTERVAL = re.compile(r"\s*".join(rf"(?:([0-9]{{1,9}})\s*{unit})?" for unit in _UNITS), re.I)
_DAY = timedelta(days=1)
_WINDOWS = (timedelta(hours=1), timedelta(days=1), timedelta(days=31))
"""Spans in which to look for the last missed tick, one after another."""


def interval_text(length: timedelta) -> str:
    """Return an interval as its expression: "1d 2h 30m"."""
    left = int(length.total_seconds())
    parts = []
    for unit, seconds in _UNITS.items():
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts)


def read_interval(expression: str) -> timedelta:
    """Return the length of an interval such as "90s" or "1h 30m". Raises InvalidOption."""
    found = _INTERVAL.fullmatch(expression.strip())
    counts = [int(count or 0) for count in found.groups()] if found else []
    seconds = sum(count * unit for count, unit in zip(counts, _UNITS.values(), strict=False))
    if not 1 <= seconds <= LONGEST_INTERVAL.total_seconds():
        raise InvalidOption(
            f"{expression!r} is not an interval: give days, hours, minutes and seconds, from one "
            "second to ten years, as in '15m' or '1h 30m'"
        )
    return timedelta(seconds=seconds)


def read_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name; "": the project's. Raises InvalidOption."""
    if not name:
        return timezone.get_default_timezone()
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidOption(
            f"{name!r} is not a time zone: give an IANA name such as 'Europe/Berlin'"
        ) from None


def _local(moment: datetime, zone: tzinfo) -> datetime:
    """Return a wall time as a moment: the first of two, or the end of the gap."""
    aware = moment.replace(tzinfo=zone, fold=0)
    back = aware.astimezone(UTC).astimezone(zone)
    while back.replace(tzinfo=None) != moment:
        moment += timedelta(minutes=1)
        moment = moment.replace(second=0, microsecond=0)
        aware = moment.replace(tzinfo=zone, fold=0)
        back = aware.astimezone(UTC).astimezone(zone)
    return aware.astimezone(UTC)


def read_once(expression: str, zone: tzinfo) -> datetime:
    """Return the moment of a one-off: "2026-12-24 18:00", in `zone` unless it has an offset."""
    try:
        moment = parse_datetime(expression.strip())
        if moment is not None:
            aware = moment if timezone.is_aware(moment) else _local(moment, zone)
            if EARLIEST <= aware < LATEST:
                return aware.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidOption(
        f"{expression!r} is not a date and time: give one as in '2026-12-24 18:00', with a year "
        "from 1900 to 8999"
    )


def _cron_ticks(expression: str, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    try:
        from cronsim import CronSim, CronSimError
    except ImportError:
        raise InvalidOption(
            "cron expressions need the package cronsim: pip install 'django-tenantqueue[cron]'"
        ) from None
    text = expression.strip()
    if len(text.split()) != 5:
        raise InvalidOption(
            f"{expression!r} is not a cron expression: give five fields (minute, hour, day of the "
            "month, month, day of the week), as in '30 3 * * mon-fri'"
        )
    is_fixed = not any(field.startswith("*") for field in text.split()[:2])
    try:
        # CronSim only knows wall times: it would lose some when clocks change by half an hour
        walls = CronSim(text, after.astimezone(zone).replace(tzinfo=None) - _set_back(after, zone))
    except (CronSimError, ValueError, IndexError, AssertionError) as error:
        raise InvalidOption(f"{expression!r} is not a cron expression: {error}") from None
    last = after
    try:
        for tick in _first_times(walls, zone) if is_fixed else _all_times(walls, zone):
            if tick > last:  # two times of a gap have the same end
                last = tick
                yield tick
    except (OverflowError, ValueError):  # the end of the calendar
        return


def _set_back(after: datetime, zone: tzinfo) -> timedelta:
    """Return by how much clocks are set back in the next day."""
    now, later = (moment.astimezone(zone).utcoffset() for moment in (after, after + _DAY))
    assert now is not None
    assert later is not None
    return max(now - later, timedelta(0))


def _first_times(walls: Iterator[datetime], zone: tzinfo) -> Iterator[datetime]:
    """Yield the first moment of each wall time, or the end of its gap."""
    for wall in walls:
        yield _local(wall, zone)


def _all_times(walls: Iterator[datetime], zone: tzinfo) -> Iterator[datetime]:
    """Yield all moments of these wall times, in order."""
    again: list[datetime] = []
    for wall in walls:
        times = [wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        if times[0] > times[1]:
            continue  # in a gap
        while again and again[0] < times[0]:
            yield again.pop(0)
        yield times[0]
        if times[1] > times[0]:
            again.append(times[1])
    yield from again


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The ticks of a schedule. `anchor`: start of intervals."""

    kind: str
    expression: str
    time_zone: str
    anchor: datetime
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    def check(self) -> None:
        """Raise InvalidOption for a wrong kind, expression or time zone."""
        if self.kind not in KINDS:
            raise InvalidOption(f"kind={self.kind!r}: it must be one of {KINDS}")
        if len(self.expression) > LONGEST_EXPRESSION:
            raise InvalidOption(
                f"the expression has {len(self.expression)} characters: it must have at most "
                f"{LONGEST_EXPRESSION}"
            )
        zone = read_zone(self.time_zone)
        if self.kind == CRON:
            if next(_cron_ticks(self.expression, zone, datetime.now(UTC)), None) is None:
                raise InvalidOption(
                    f"{self.expression!r} has no tick in the next 50 years: check day and month"
                )
        elif self.kind == INTERVAL:
            read_interval(self.expression)
        else:
            read_once(self.expression, zone)

    def ticks(self, after: datetime) -> Iterator[datetime]:
        """Yield the ticks after a moment, in order. Raises InvalidOption."""
        if self.starts_at is not None and self.starts_at > after:
            after = self.starts_at - timedelta(microseconds=1)
        for tick in self._all(after):
            if self.ends_at is not None and tick > self.ends_at:
                return
            yield tick

    def _all(self, after: datetime) -> Iterator[datetime]:
        zone = read_zone(self.time_zone)
        if self.kind == CRON:
            yield from _cron_ticks(self.expression, zone, after)
            return
        if self.kind == ONCE:
            moment = read_once(self.expression, zone)
            if moment > after:
                yield moment
            return
        length = read_interval(self.expression)
        anchor = self.starts_at or self.anchor
        tick = anchor + max(0, (after - anchor) // length + 1) * length
        while tick < LATEST:
            yield tick
            tick += length

    def next(self, after: datetime) -> datetime | None:
        """Return the first tick after a moment, or None."""
        return next(self.ticks(after), None)

    def latest(self, tick: datetime, now: datetime) -> datetime:
        """Return the last tick up to `now`. `tick`: one of them."""
        if self.kind == INTERVAL:
            end = now if self.ends_at is None else min(now, self.ends_at)
            length = read_interval(self.expression)
            return tick + max(0, (end - tick) // length) * length
        for window in (*_WINDOWS, now - tick):
            start = max(tick, now - window)
            missed = list(takewhile(lambda found: found <= now, self.ticks(start)))
            if missed:
                return missed[-1]
        return tick


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """Options of `@task(schedule=…)` besides the times."""

    time_zone: str = ""
    """The time zone of its times; "" is the project's."""
    args: tuple[Any, ...] = ()
    """Positional arguments of its jobs, with placeholders."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of its jobs, with placeholders."""
    tenant: str = ""
    """The tenant of its jobs; "" is none."""
    jitter: float | timedelta = 0.0
    """Seconds or a timedelta: the longest random delay after a tick."""
    catch_up: Literal["skip", "once", "all"] = "skip"
    """Missed ticks: skip them, run one job for all, or run one for each."""
    overlap: Literal["allow", "skip"] = "allow"
    """At a tick, if the previous job has not ended: allow both jobs, or skip the tick."""


@dataclass(frozen=True, slots=True)
class Cron(_Declared):
    """Ticks by a cron expression: `Cron("30 3 * * mon-fri", time_zone="Europe/Berlin")`."""

    expression: str
    """Five fields: minute, hour, day of the month, month, day of the week."""

    kind = CRON

    if not TYPE_CHECKING:  # else its arguments would be any

        def __new__(cls, *args, **options):
            """Explain the form of times for arguments of Celery's crontab."""
            if given := CRONTAB & options.keys():
                raise TypeError(
                    f"Cron({min(given)}=…): give one text of five fields: Cron('30 3 * * *') is "
                    "minute, hour, day of the month, month and day of the week"
                )
            return object.__new__(cls)


@dataclass(frozen=True, slots=True)
class Every(_Declared):
    """Ticks at an interval: `Every(minutes=5)`."""

    _: KW_ONLY  # Every(300) would be 300 days
    days: float = 0
    """Days from one tick to the next, to which the other units are added."""
    hours: float = 0
    """Hours from one tick to the next."""
    minutes: float = 0
    """Minutes from one tick to the next."""
    seconds: float = 0
    """Seconds from one tick to the next."""

    kind = INTERVAL

    if not TYPE_CHECKING:

        def __new__(cls, *args, **options):
            """Explain that the unit is required."""
            if args:
                raise TypeError(
                    f"Every({args[0]!r}): it takes no positional argument: Every(seconds=…), "
                    "minutes=…, hours=… or days=…"
                )
            return object.__new__(cls)

    @property
    def expression(self) -> str:
        """The interval as text, such as "1h 30m"."""
        length = timedelta(
            days=self.days, hours=self.hours, minutes=self.minutes, seconds=self.seconds
        )
        return interval_text(length)


When = str | Cron | Every


def read_when(name: str, value: Any) -> Cron | Every:
    """Return what `schedule=value` of a task declares. Raises InvalidOption."""
    if isinstance(value, str):
        value = Cron(value)
    if not isinstance(value, Cron | Every):
        several = (
            "; a task declares one schedule. Add the others in the admin, or declare a task for "
            "each"
        )
        raise InvalidOption(
            f"{name}: schedule={value!r} must be a cron expression, Cron(…) or Every(…)"
            + (several if isinstance(value, list | tuple) else "")
        )
    read_zone(value.time_zone)
    if isinstance(value, Every):
        read_interval(value.expression)
    return value
