"""Bounds of time that are promised to users, and a machine that may stall for longer than they are.

A test that has the mark RERUN_WHEN_LATE and raises TooLate is run again, twice at most, and pytest
says so. A machine that stalls does not do so each time; a mechanism that is missing does.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

RERUN_WHEN_LATE = pytest.mark.flaky(reruns=2, only_rerun="TooLate")
"""The tests of some folders have it (conftest.py): beside xdist it costs each test 30 ms."""


class TooLate(AssertionError):
    """What a test waited for came late, or not at all."""


def assert_within(seconds: float, passed: timedelta | float) -> None:
    """Fail with TooLate when more than `seconds` have passed; `passed` may be seconds, too."""
    took = passed.total_seconds() if isinstance(passed, timedelta) else passed
    if took > seconds:
        raise TooLate(f"it took {took:.3f} s, and {seconds:g} s are the most")
