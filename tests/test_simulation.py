"""The simulation of a large fleet: a tiny one runs, and its checks find what is wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.results import Incorrect
from benchmarks.simulation import checks
from benchmarks.simulation.messages import Run
from benchmarks.simulation.plan import SIZES, Zipf, poisson
from benchmarks.simulation.series import COLUMNS, Series, read_series

NEEDS = "alerts api celery fireworq http prometheus retention routing schedules"
ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "benchmarks/simulation/day.json"


def test_tiny_day_passes_all_checks(server_url: str, tmp_path: Path) -> None:
    path = tmp_path / "day.json"
    command = [sys.executable, "-m", "benchmarks.simulation", "--size", "tiny", "--json", str(path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": server_url},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    series, plan = read_series(path), SIZES["tiny"]
    facts = series.facts
    assert facts["jobs"] == facts["ended"] + facts["left"]
    assert facts["left"] == facts["backlog"] == plan.backlogged * plan.backlog
    assert facts["rescued"] <= facts["orphaned"]
    assert facts["full_queues"] >= 1
    assert plan.least_pods < max(series.column("pods")) <= plan.most_pods * 1.5
    assert len(series.seconds_of("deployed")) == 2
    (limited,), (end,) = series.seconds_of("limited"), series.seconds_of("end")
    assert set(series.between("pods", limited, end)) == {plan.least_pods}
    assert sum(series.column("claimed")) > 0
    assert all(earlier < later for earlier, later in pairwise(series.column("second")))


def test_recorded_day_is_small_and_passed() -> None:
    series = read_series(RECORDED)

    assert RECORDED.stat().st_size <= 100_000
    assert series.plan == asdict(SIZES["full"]), "the documentation names another command"
    checks.check_curves(series)
    assert series.facts["jobs"] == series.facts["ended"] + series.facts["left"]


def test_series_is_read_as_it_was_written(tmp_path: Path) -> None:
    series = Series({"least_pods": 5}, {"jobs": 1}, [(1.0, "end")], [[0.5] * len(COLUMNS)])
    path = tmp_path / "series.json"
    series.write(path)

    assert read_series(path) == series
    path.write_text(json.dumps({**json.loads(path.read_text()), "columns": []}))
    with pytest.raises(ValueError, match="other columns"):
        read_series(path)


def test_load_has_two_peaks_and_ends_with_the_day() -> None:
    plan = SIZES["full"]
    at = {hour: plan.rate(plan.second(hour)) for hour in (5, 10.5, 13, 15.5, 22)}

    assert max(at.values()) == at[10.5] == plan.peak_rate
    assert at[5] < 0.1 * plan.peak_rate
    assert at[13] < at[15.5] > at[22]
    assert plan.rate(plan.day_seconds) == 0.0
    assert plan.hour(plan.second(12.0)) == pytest.approx(12.0)


def test_draws_follow_their_distributions() -> None:
    chance = random.Random(1)
    ranks = [Zipf(1000).draw(chance) for _ in range(2000)]
    counts = [poisson(2.5, chance) for _ in range(2000)]
    durations = [SIZES["full"].duration(chance) for _ in range(4000)]

    assert set(ranks) <= set(range(1, 1001))
    assert ranks.count(1) > 1.5 * ranks.count(2) > ranks.count(8) * 1.5
    assert sum(counts) / len(counts) == pytest.approx(2.5, abs=0.2)
    assert sum(durations) / len(durations) == pytest.approx(SIZES["full"].mean_seconds, rel=0.1)


@pytest.mark.parametrize(
    ("runs", "ended", "told"),
    [
        ([Run(1, 1, 1, 0, 5), Run(1, 1, 1, 6, 7)], 1, "to their end twice"),
        ([Run(1, 1, 1, 0, 5)], 2, "2 jobs have ended, and 1 ran"),
        ([Run(1, 1, 1, 0, 5, is_killed=True), Run(1, 1, 2, 4, 7)], 1, "in two places at once"),
    ],
)
def test_check_finds_a_job_that_ran_twice_or_not(runs: list[Run], ended: int, told: str) -> None:
    with pytest.raises(Incorrect, match=told):
        checks.check_runs(runs, ended)


def test_check_accepts_a_run_after_one_that_was_killed() -> None:
    checks.check_runs([Run(1, 1, 1, 0, 5, is_killed=True), Run(1, 1, 2, 15, 17)], 1)


def day(pods: list[int], blocked: list[int]) -> Series:
    """Return a day with an hour for each number of pods."""
    events = [(3.0, "evening"), (5.0, "limited"), (7.0, "end")]
    points = []
    for second, (size, jobs) in enumerate(zip(pods, blocked, strict=True)):
        values = {"second": second, "pods": size, "blocked": jobs}
        points.append([float(values.get(name, 0)) for name in COLUMNS])
    return Series({"least_pods": 5}, {"backlog": 10}, events, points)


def test_check_accepts_a_fleet_that_follows_the_load() -> None:
    checks.check_curves(day([5, 9, 30, 20, 5, 5, 5], [10, 10, 10, 10, 10, 10, 60]))


@pytest.mark.parametrize(
    ("pods", "blocked", "told"),
    [
        ([5, 5, 5, 5, 5, 5, 5], 60, "did not grow"),
        ([5, 9, 30, 20, 6, 5, 5], 60, "has not shrunk"),
        ([5, 9, 30, 20, 5, 5, 6], 60, "6 pods were there"),
        ([5, 9, 30, 20, 5, 5, 5], 10, "no additional job was blocked"),
    ],
)
def test_check_finds_a_fleet_that_does_not(pods: list[int], blocked: int, told: str) -> None:
    with pytest.raises(Incorrect, match=told):
        checks.check_curves(day(pods, [10] * 6 + [blocked]))
