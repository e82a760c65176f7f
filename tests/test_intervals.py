"""The checker of overlaps, which the tests of the slots rely on."""

import random

import pytest

from .intervals import Breach, Limits, breaches, most_at_once


def most_by_looking(intervals: list[tuple[int, int]]) -> int:
    """Return the same as most_at_once(), by looking at every moment."""
    moments = range(max((end for _, end in intervals), default=0))
    return max((sum(start <= m < end for start, end in intervals) for m in moments), default=0)


def test_nothing_overlaps_when_there_are_no_intervals():
    assert most_at_once([]) == 0
    assert breaches([], 0) == []


@pytest.mark.parametrize(
    ("intervals", "most"),
    [
        pytest.param([(0, 5), (5, 9), (9, 12)], 1, id="touching"),
        pytest.param([(3, 4), (3, 9), (3, 5)], 3, id="begin together"),
        pytest.param([(0, 5), (0, 5), (5, 7), (5, 7)], 2, id="end where others begin"),
        pytest.param([(0, 9), (5, 5), (4, 4)], 1, id="empty"),
        pytest.param([(0, 100), (10, 90), (20, 30), (40, 50)], 3, id="nested"),
    ],
)
def test_most_at_once_is_counted(intervals, most):
    assert most_at_once(intervals) == most


def test_a_backward_interval_is_refused():
    with pytest.raises(ValueError, match="ends before it begins"):
        most_at_once([(5, 4)])


def test_sweep_agrees_with_looking_at_every_moment():
    chance = random.Random(1)
    for _ in range(300):
        intervals = []
        for _ in range(chance.randrange(1, 25)):
            start = chance.randrange(30)
            intervals.append((start, start + chance.randrange(8)))
        assert most_at_once(intervals) == most_by_looking(intervals), intervals


def test_breach_names_moment_and_count_when_one_too_many_starts():
    assert breaches([(0, 10), (1, 10), (2, 10)], 2) == [Breach(at=2, count=3, allowed=2)]


@pytest.mark.parametrize(
    ("start", "found"), [(2, []), (6, [Breach(at=6, count=3, allowed=1)])], ids=["before", "after"]
)
def test_a_start_is_a_breach_when_it_comes_after_the_limit_was_lowered(start, found):
    limits = Limits(3)
    limits.change(1, before=5, after=6)

    assert breaches([(0, 10), (1, 10), (start, 10)], limits) == found


def test_the_larger_limit_counts_while_an_edit_is_under_way():
    limits = Limits(2)
    limits.change(5, before=10, after=20)
    limits.change(1, before=30, after=40)

    assert [limits(m) for m in (0, 9, 10, 19, 20, 29, 30, 39, 40, 99)] == [
        *(2, 2),
        *(5, 5),
        *(5, 5),
        *(5, 5),
        *(1, 1),
    ]


def test_edits_are_refused_when_they_are_not_in_order():
    limits = Limits(2)
    limits.change(5, before=10, after=20)

    with pytest.raises(ValueError, match="after one that ended"):
        limits.change(1, before=15, after=30)
