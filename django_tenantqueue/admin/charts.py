"""Numbers as tiles, and small charts as SVG, made on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.formats import localize
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ..histogram import BOUNDS
from ..status.figures import duration_text

WIDTH, HEIGHT = 120, 28
BARS_WIDTH, BARS_HEIGHT, TOP, TEXT_LINE, MARGIN = 480, 120, 24, 162, 24
"""Of a histogram: the bars, the room above them, where the text below them stands, and the room for
it on both sides."""
LEAST_BARS, MOST_LABELS = 8, 7
"""A bar is at most as wide as one of so many; more bars than labels have some without text."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A number, what it is made of, and its line over time."""

    title: str
    value: SafeString | str
    note: str = ""
    spark: SafeString | str = ""
    alarming: bool = False
    url: str = ""


def sparkline(values: Sequence[float], label: str, css: str = "") -> SafeString:
    """Return a line through values at equal distances, from the oldest to the newest.

    `label` says in words what the line shows.
    """
    most = max(values, default=0) or 1
    step = WIDTH / max(len(values) - 1, 1)
    points = [
        f"{n * step:.1f},{HEIGHT - 2 - (HEIGHT - 4) * value / most:.1f}"
        for n, value in enumerate(values)
    ]
    return format_html(
        '<svg class="tq-spark {}" viewBox="0 0 {} {}" role="img" aria-label="{}" '
        'preserveAspectRatio="none"><title>{}</title>'
        '<polygon points="0,{} {} {},{}"/><polyline points="{}"/></svg>',
        css,
        WIDTH,
        HEIGHT,
        label,
        label,
        HEIGHT,
        " ".join(points),
        WIDTH,
        HEIGHT,
        " ".join(points),
    )


def histogram(counts: Sequence[int], label: str) -> SafeString | str:
    """Return durations counted by length, as bars over their upper bounds (see histogram.BOUNDS).

    "" without any.
    """
    used = [at for at, count in enumerate(counts) if count]
    if not used:
        return ""
    places = range(used[0], used[-1] + 1)
    most, step = max(counts), BARS_WIDTH / max(len(places), LEAST_BARS)
    each = -(-len(places) // MOST_LABELS)
    bars = []
    for number, at in enumerate(places):
        height = BARS_HEIGHT * counts[at] / most
        bound = _bound_text(at)
        text = (
            format_html(
                '<text x="{}" y="{}">{}</text>', f"{(number + 0.5) * step:.1f}", TEXT_LINE, bound
            )
            if number % each == 0
            else ""
        )
        bars.append(
            format_html(
                '<rect x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>{}',
                f"{number * step + 1:.1f}",
                f"{TOP + BARS_HEIGHT - height:.1f}",
                f"{step - 2:.1f}",
                f"{height:.1f}",
                bound,
                localize(counts[at]),
                text,
            )
        )
    return format_html(
        '<svg class="tq-bars" viewBox="{} 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        '<text class="tq-most" x="0" y="{}">{}</text>{}<path d="M0 {}H{}"/></svg>',
        -MARGIN,
        BARS_WIDTH + 2 * MARGIN,
        TEXT_LINE + 6,
        label,
        label,
        TOP - 6,
        localize(most),
        format_html_join("", "{}", ((bar,) for bar in bars)),
        TOP + BARS_HEIGHT,
        BARS_WIDTH,
    )


def _bound_text(at: int) -> str:
    """Return how long the durations are that a place counts: "≤ 4 ms"."""
    if at < len(BOUNDS):
        return f"≤ {duration_text(BOUNDS[at])}"
    return f"> {duration_text(BOUNDS[-1])}"


def gauge(taken: int, slots: int | None, waiting: int, label: str) -> SafeString:
    """Return a bar of a queue's slots: those taken, and the rest. It is full when jobs wait."""
    share = 100.0 * min(taken / slots, 1.0) if slots else (100.0 if slots == 0 else 0.0)
    full = waiting > 0 and slots is not None and taken >= slots
    return format_html(
        '<span class="tq-gauge{}" role="img" aria-label="{}" title="{}">'
        '<svg width="{}%"></svg></span>',
        " tq-gauge-full" if full else "",
        label,
        label,
        f"{share:.0f}",
    )
