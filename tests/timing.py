"""Bounds of time that are promised to users, and a machine that may stall for longer than they are.

pytest runs a test again that raises TooLate, twice at most (`--only-rerun` in pyproject.toml), and
says so. A machine that stalls does not do so each time; a mechanism that is missing does.
"""

from __future__ import annotations

from datetime import timedelta


class TooLate(AssertionError):
    """What a test waited for came late, or not at all."""


def assert_within(seconds: float, passed: timedelta | float) -> None:
    """Fail with TooLate when more than `seconds` have passed; `passed` may be seconds, too."""
    took = passed.total_seconds() if isinstance(passed, timedelta) else passed
    if took > seconds:
        raise TooLate(f"it took {took:.3f} s, and {seconds:g} s are the most")
