"""Numbers on a command line: a type that rejects what the command cannot use, and says why."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ..text import read_number

LONGEST_SECONDS = 1_000_000
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
"""Units of a duration, in seconds."""


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number from `least` to `most`."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text[:50]!r} is not a whole number") from None
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"{text[:50]!r} is not a whole number from {least:,} to {most:,}"
            )
        return value

    return number


def row_number(text: str) -> int:
    """Read the number of a job or a monitor as it is printed elsewhere: 1753, #1753 or 1,753."""
    number = read_number(text.removeprefix("#").replace(",", ""))
    if number is None:
        raise argparse.ArgumentTypeError(f"{text[:50]!r} is not the number of a job or a monitor")
    return number


def seconds(text: str) -> float:
    """Read a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:50]!r} is not a number of seconds") from None
    if not 0 <= value <= LONGEST_SECONDS:  # which no NaN is
        raise argparse.ArgumentTypeError(
            f"{text[:50]!r} is not a number of seconds from 0 to {LONGEST_SECONDS:,}"
        )
    return value


def duration(text: str) -> timedelta:
    """Read a time such as 90s, 30m, 1h or 2d."""
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isdecimal() or not 0 < int(number) < LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text[:50]!r} is not a time such as 30m, 1h or 2d")
    return timedelta(seconds=int(number) * UNITS[unit])


def moment(text: str) -> datetime:
    """Read a date, or a date and a time. Without an offset it is of the current time zone."""
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text[:50]!r} is not a time such as 2026-05-20T15:30, or a date"
        )
    return timezone.make_aware(found) if timezone.is_naive(found) else found
