"""Draws the curves of a simulated day of a large fleet, as benchmarks/simulation recorded them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from drawing import WIDTH, Drawing

RECORDED = Path(__file__).parents[2] / "benchmarks/simulation/day.json"
CURVES = "\npath.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }"
FIRST_HOUR, LAST_HOUR = 4, 24
"""The hours that the day of a run stands for."""
LEFT, RIGHT = 56, WIDTH - 16
HEIGHT, GAP, HEAD = 96, 40, 70
"""Of a panel, between two of them, and above the first one."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A column of the series: its color, and what the legend says. `is_dashed`: a second sign."""

    column: str
    look: str
    text: str
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves with one scale. `has_backlog`: the jobs that are blocked all day are left out."""

    title: str
    curves: Sequence[Curve]
    has_backlog: bool = False


DAY = (
    Panel("jobs enqueued a second", [Curve("enqueued", "blue", "")]),
    Panel(
        "workers",
        [
            Curve("workers", "green", "there"),
            Curve("wanted", "amber", "wanted", is_dashed=True),
            Curve("running", "blue", "running jobs"),
        ],
    ),
    Panel(
        "jobs beside the blocked backlog",
        [
            Curve("waiting", "blue", "waiting"),
            Curve("blocked", "red", "of these, blocked", is_dashed=True),
        ],
        has_backlog=True,
    ),
    Panel(
        "seconds of wait",
        [
            Curve("oldest_startable", "blue", "oldest startable job"),
            Curve("small_p95", "red", "p95 of small tenants", is_dashed=True),
        ],
    ),
)
COST = (
    Panel(
        "claims a second",
        [
            Curve("claims", "blue", "all"),
            Curve("empty_claims", "red", "without a job", is_dashed=True),
        ],
    ),
    Panel(
        "ms of a claim, with its commit",
        [
            Curve("claim_p50_ms", "green", "p50"),
            Curve("claim_p95_ms", "blue", "p95", is_dashed=True),
        ],
    ),
    Panel(
        "cores",
        [
            Curve("server_cores", "blue", "PostgreSQL"),
            Curve("python_cores", "amber", "all workers and sites", is_dashed=True),
        ],
    ),
    Panel("ms of an answer to the autoscaler", [Curve("scrape_ms", "blue", "")]),
)


AREAS = {"deploy": ("plain", "deploy"), "limited": ("amber", "blocked only")}
LINES = {"limited-burst": "burst, 20 slots", "pod": "pod dies", "burst": "burst"}
"""What the events of a run are called. Workers die all day."""


def day_table() -> str:
    """Return a table of the sizes of the recorded day, and of what it has shown."""
    found = json.loads(RECORDED.read_text())
    plan, facts = found["plan"], found["facts"]
    columns = found["columns"]

    def most(name: str) -> float:
        return max(float(point[columns.index(name)]) for point in found["points"])

    scale = (LAST_HOUR - FIRST_HOUR) * 3600 / plan["day_seconds"]
    pods = f"{plan['least_pods']} to {plan['most_pods']} pods of {plan['pod_workers']}"
    small = f"{facts['small_p50']:.2g} s, {facts['small_p95']:.2g} s, {facts['small_max']:.0f} s"
    rows = {
        "day": f"{plan['day_seconds']:.0f} s for {LAST_HOUR - FIRST_HOUR} hours: {scale:.0f} ×",
        "tenants": f"{plan['tenants']:,}; {plan['blocked']:.0%} are paused or have no slot",
        "blocked jobs all day": f"{facts['backlog']:,}, in {plan['backlogged']:,} queues",
        "jobs that ended": f"{facts['ended']:,}",
        "workers": f"{pods} workers; at most {most('workers'):,.0f} at once, with deploys",
        "running jobs at once": f"at most {most('running'):,.0f}",
        "jobs of killed workers": f"{facts['orphaned']}, all rescued",
        "lost jobs, jobs that ended twice": "0",
        "slots of a queue exceeded": f"0 times; {facts['full_queues']:,} queues were full at times",
        "wait of small tenants: p50, p95, longest": small,
        "claims a second": f"at most {most('claims'):,.0f}, "
        f"{most('empty_claims'):,.0f} of them without a job",
        "longest delay of a worker's turn": f"{most('late'):.1f} s, because its process was busy",
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "| --- | --- |", *lines])


def draw_fleet_day() -> str:
    """Return docs/images/fleet-day.svg."""
    return _draw(
        DAY,
        "A day of a large fleet",
        "The fleet follows the load: it grows in the morning, at midday and for the bursts, is "
        "replaced by two deploys, and shrinks to its minimum in the evening. In the last phase "
        "all waiting jobs are blocked by a limit, and no worker is added.",
    )


def draw_fleet_cost() -> str:
    """Return docs/images/fleet-cost.svg."""
    return _draw(
        COST,
        "What the day of a large fleet costs",
        "Claims a second, the time of a claim, the cores that PostgreSQL and Python use, and the "
        "time of an answer to the autoscaler.",
    )


def _draw(panels: Sequence[Panel], title: str, about: str) -> str:
    found = json.loads(RECORDED.read_text())
    bottom = HEAD + len(panels) * (HEIGHT + GAP)
    drawing = Drawing(bottom + 12, title=title, about=about, style=CURVES)
    _draw_events(drawing, found, bottom - GAP)
    for number, panel in enumerate(panels):
        _draw_panel(drawing, found, panel, HEAD + number * (HEIGHT + GAP))
    for hour in range(FIRST_HOUR, LAST_HOUR + 1, 4):
        x = _x(found, _second(found, hour))
        drawing.text(x, bottom - GAP + 18, f"{hour}:00", look="quiet", anchor="middle")
    return drawing.svg()


def _second(found: dict[str, Any], hour: float) -> float:
    share = (hour - FIRST_HOUR) / (LAST_HOUR - FIRST_HOUR)
    return float(share * found["plan"]["day_seconds"])


def _x(found: dict[str, Any], second: float) -> float:
    last = found["points"][-1][0]
    return round(LEFT + (RIGHT - LEFT) * min(1.0, second / last), 1)


def _draw_events(drawing: Drawing, found: dict[str, Any], bottom: float) -> None:
    """Draw the deploys and the last phase as areas, and above them the rest as lines."""
    at = [(second, kind) for second, kind in found["events"]]
    ends = [second for second, kind in at if kind in ("deployed", "end")]
    for second, kind in at:
        if kind not in AREAS:
            continue
        look, text = AREAS[kind]
        x, end = _x(found, second), _x(found, min(end for end in ends if end > second))
        drawing.box(x, 24, round(end - x, 1), bottom - 24, look=look, round_by=0)
        drawing.text(round((x + end) / 2, 1), 18, text, look="quiet", anchor="middle")
    for second, kind in at:
        if kind in LINES:
            x = _x(found, second)
            drawing.line((x, 44), (x, bottom), look="line dashed")
            drawing.text(x, 39, LINES[kind], look="quiet", anchor="middle")


def _draw_panel(drawing: Drawing, found: dict[str, Any], panel: Panel, top: float) -> None:
    columns = found["columns"]
    seconds = [point[0] for point in found["points"]]
    less = found["facts"]["backlog"] if panel.has_backlog else 0
    values = {
        curve: [max(0, point[columns.index(curve.column)] - less) for point in found["points"]]
        for curve in panel.curves
    }
    most = _round_up(max(max(each) for each in values.values()))
    for part in (0, 0.5, 1):
        y = top + HEIGHT * (1 - part)
        drawing.line((LEFT, y), (RIGHT, y), look="rule")
        drawing.text(LEFT - 8, y + 5, f"{most * part:,.4g}", look="quiet", anchor="end")
    for curve in panel.curves:
        points = [
            (_x(found, second), round(top + HEIGHT * (1 - min(1.0, value / most)), 1))
            for second, value in zip(seconds, values[curve], strict=True)
        ]
        look = f"curve {curve.look}{' dashed' if curve.is_dashed else ''}"
        drawing.line(*points, look=look)
    _draw_legend(drawing, panel, top - 8)


def _draw_legend(drawing: Drawing, panel: Panel, y: float) -> None:
    drawing.text(LEFT, y, panel.title, look="small strong")
    x = LEFT + 8.0 * len(panel.title) + 14
    for curve in panel.curves if len(panel.curves) > 1 else ():
        look = f"curve {curve.look}{' dashed' if curve.is_dashed else ''}"
        drawing.line((x, y - 5), (x + 24, y - 5), look=look)
        drawing.text(x + 30, y, curve.text)
        x += 30 + 7.2 * len(curve.text) + 16


def _round_up(value: float) -> float:
    """Return the next number of the form 1, 2, 3, 4, 5, 6 or 8 times a power of ten."""
    power = 10.0 ** floor(log10(max(value, 1e-6)))
    step = next(s for s in (1, 2, 3, 4, 5, 6, 8, 10) if s >= ceil(value / power * 10) / 10)
    return float(step * power)
