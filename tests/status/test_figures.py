"""Figures as operators read them. Durations are tried with the admin's formats."""

from __future__ import annotations

import pytest

from django_tenantqueue.status.figures import (
    NOTHING,
    counted_text,
    memory_text,
    rate_text,
    rough_text,
)

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (0, "0 s"), (0.9, "0 s"), (59.9, "59 s"), (60, "1 min"), (7300, "2 h")],
)
def test_rough_durations_have_one_unit(seconds: float, text: str) -> None:
    assert rough_text(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, NOTHING),
        (0, "0 MB"),
        (150 * MEBIBYTE, "150 MB"),
        (999 * MEBIBYTE, "999 MB"),
        (1536 * MEBIBYTE, "1.5 GB"),
    ],
)
def test_memory_is_told_in_the_unit_that_fits(size: int | None, text: str) -> None:
    assert memory_text(size) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0, "0"), (0.34, "0.3"), (2, "2"), (9.94, "9.9"), (9.97, "10"), (1234.4, "1,234")],
)
def test_rates_are_rounded_to_what_matters(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (999, "999"), (1000, "1,000+")])
def test_count_that_stopped_has_a_plus(number: int, text: str) -> None:
    assert counted_text(number, 1000) == text
