"""Numbers on a command line: a type that rejects what the command cannot use, and says why."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..text import read_number

LONGEST_SECONDS = 1_000_000


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
