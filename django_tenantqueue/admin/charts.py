"""Numbers as tiles, and small charts as SVG, made on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 120, 28


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
