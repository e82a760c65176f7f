"""The arithmetic of the benchmarks, which nothing else would notice to be wrong."""

import pytest

from benchmarks import measure
from benchmarks.results import Cost, Row, Sample, at_least, at_most


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        *(
            (reversed(range(1, 201)), percent, expected)
            for percent, expected in (
                (1, 2),
                (50, 100),
                (95, 190),
                (99, 198),
                (99.9, 200),
                (100, 200),
            )
        ),
        *(([7.0], percent, 7.0) for percent in (1, 50, 100)),
        # where floating point is not exact
        *((range(1, 101), percent, percent) for percent in (29, 57, 58)),
    ],
)
def test_percentile_is_the_nearest_rank(values, percent: float, expected: float) -> None:
    assert measure.percentile(values, percent) == expected


@pytest.mark.parametrize(
    ("values", "percent", "said"),
    [*(([1.0], percent, repr(percent)) for percent in (0, -1, 100.5)), ([], 50, "nothing")],
)
def test_percentile_refuses_what_has_none(values, percent: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measure.percentile(values, percent)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([], 0),
        ([(1, 2)], 1),
        ([(1, 2), (2, 3), (3, 4)], 1),
        ([(3, 4), (1, 2), (2, 3)], 1),
        ([(1, 10), (2, 3), (4, 5), (6, 7)], 2),
        ([(1, 4), (2, 5), (3, 6)], 3),
        ([(1, 4), (1, 4), (1, 4)], 3),
        ([(1, 2), (1, 2), (2, 3), (2, 3)], 2),
        ([(1, 100), (2, 3), (2, 3), (50, 51)], 3),
        ([(10**18, 10**18 + 2), (10**18 + 1, 10**18 + 3)], 2),
        ([(10**18, 10**18 + 1), (10**18 + 1, 10**18 + 2)], 1),
    ],
)
def test_most_at_once_counts_half_open_intervals(
    intervals: list[measure.Interval], expected: int
) -> None:
    assert measure.most_at_once(intervals) == expected


def test_most_at_once_agrees_with_counting_at_every_start() -> None:
    intervals = [(n * 7 % 50, n * 7 % 50 + 1 + n * 3 % 11) for n in range(60)]
    counted = max(sum(s <= start < e for s, e in intervals) for start, _ in intervals)
    assert measure.most_at_once(intervals) == counted


def test_most_at_once_refuses_an_interval_that_ends_before_it_starts() -> None:
    with pytest.raises(ValueError, match="before its start"):
        measure.most_at_once([(2, 1)])


def test_most_by_key_does_not_mix_the_keys() -> None:
    rows = [("a", 1, 9), ("b", 2, 8), ("b", 3, 7), ("a", 9, 10)]
    assert measure.most_by_key(rows) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("values", "expected"), [([3.0], 3.0), ([9.0, 1.0, 5.0], 5.0), ([4.0, 1.0, 3.0, 2.0], 2.0)]
)
def test_median_sample_is_one_of_the_samples(values: list[float], expected: float) -> None:
    assert measure.median_sample(values, lambda value: value) == expected


def test_worst_is_the_lowest_rate_and_the_longest_time() -> None:
    assert measure.worst([3.0, 1.0, 2.0], higher_is_better=True) == 1.0
    assert measure.worst([3.0, 1.0, 2.0], higher_is_better=False) == 3.0


def test_ratios_pair_what_was_measured_in_the_same_round() -> None:
    assert measure.ratios([2.0, 9.0], [4.0, 3.0]) == [0.5, 3.0]


def test_ratios_refuse_lists_of_different_length() -> None:
    with pytest.raises(ValueError, match="shorter"):
        measure.ratios([1.0, 2.0], [1.0])


@pytest.mark.parametrize("reference", [0.0, -1.0])
def test_ratio_refuses_a_reference_that_is_not_positive(reference: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        measure.ratio(1.0, reference)


def test_row_shows_the_cost_of_its_median_run() -> None:
    cost = Cost(1.0, 2.0, 3.0, 4.0, 0.0)
    row = Row("c", "w", "jobs/s", [Sample(1.0), Sample(3.0), Sample(2.0, 10, cost)])
    assert row.median.cost is cost
    assert row.worst == 1.0


@pytest.mark.parametrize(
    ("target", "met"),
    [
        (None, None),
        (at_least(2.0), True),
        (at_least(2.1), False),
        (at_most(2.0), True),
        (at_most(1.9), False),
    ],
)
def test_row_holds_its_median_against_the_target(target: object, met: bool | None) -> None:
    row = Row("c", "w", "ms", [Sample(1.0), Sample(2.0), Sample(9.0)], target=target)
    assert row.met is met
    assert row.as_json()["met"] is met
