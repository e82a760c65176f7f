"""Percentiles of durations that are counted by length."""

from __future__ import annotations

import pytest

from django_tenantqueue.histogram import BOUNDS, percentile, place


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0, 0), (0.001, 0), (0.0011, 1), (3.0, 12), (10**9, 30)]
)
def test_duration_has_the_place_of_its_length_when_it_is_counted(seconds, expected):
    assert place(seconds) == expected


@pytest.mark.parametrize("seconds", [0.0004, 0.003, 0.7, 90.0, 40_000.0])
def test_percentile_is_right_within_a_factor_of_two_when_all_are_equal(seconds):
    counts = [0] * (place(seconds) + 1)
    counts[-1] = 1000

    assert seconds / 2 <= percentile(counts, 0.95) <= max(0.001, seconds * 2)


def test_percentile_lies_in_the_place_of_the_share_when_lengths_differ():
    counts = [90, 0, 0, 0, 10]

    assert percentile(counts, 0.5) == pytest.approx(0.001 * 50 / 90)
    assert BOUNDS[3] < percentile(counts, 0.95) <= BOUNDS[4]


def test_percentile_is_unknown_when_nothing_was_counted():
    assert percentile([0, 0], 0.5) is None


def test_percentile_is_the_longest_bound_when_all_are_longer():
    counts = [0] * (len(BOUNDS) + 1)
    counts[-1] = 3

    assert percentile(counts, 0.99) == BOUNDS[-1]
