"""Draws the states of a job and the transitions between them as SVG."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Edge = tuple[str, str]

PLACES = {
    "scheduled": (90, 60),
    "held": (90, 320),
    "ready": (270, 190),
    "queued": (450, 190),
    "running": (630, 190),
    "success": (810, 60),
    "error": (810, 190),
    "cancelled": (810, 320),
}
"""Centres of the boxes. A new state needs a place here, or drawing fails with KeyError."""
WIDTH, HEIGHT = 110, 40

PATHS: dict[Edge, str] = {
    ("scheduled", "held"): "M 78 80 L 78 293",
    ("scheduled", "ready"): "M 108 80 L 248 163",
    ("scheduled", "cancelled"): "M 108 80 C 108 326 450 329 748 326",
    ("held", "scheduled"): "M 102 300 L 102 87",
    ("held", "ready"): "M 108 300 L 248 217",
    ("held", "cancelled"): "M 90 300 C 90 258 810 258 810 293",
    ("ready", "scheduled"): "M 252 170 L 112 87",
    ("ready", "held"): "M 252 210 L 112 293",
    ("ready", "queued"): "M 325 184 L 388 184",
    ("ready", "cancelled"): "M 288 210 C 288 326 540 329 748 326",
    ("queued", "scheduled"): "M 432 170 C 432 54 270 51 152 54",
    ("queued", "ready"): "M 395 198 L 332 198",
    ("queued", "held"): "M 440 210 C 400 300 260 316 152 316",
    ("queued", "running"): "M 505 184 L 568 184",
    ("queued", "success"): "M 468 170 C 468 66 630 69 748 66",
    ("queued", "error"): "M 450 170 C 450 128 810 128 810 163",
    ("queued", "cancelled"): "M 468 210 C 468 326 630 329 748 326",
    ("running", "scheduled"): "M 612 170 C 612 54 360 51 152 54",
    ("running", "ready"): "M 630 210 C 630 252 270 252 270 217",
    ("running", "success"): "M 648 170 L 788 87",
    ("running", "error"): "M 685 184 L 748 184",
    ("running", "cancelled"): "M 648 210 L 788 293",
    ("error", "held"): "M 865 195 C 950 270 950 432 825 432 L 130 432 C 75 432 80 400 80 347",
    (
        "cancelled",
        "held",
    ): "M 800 340 C 800 402 770 405 730 405 L 160 405 C 105 405 100 390 100 347",
    ("error", "ready"): "M 865 190 C 935 250 935 390 825 390 L 340 390 C 280 390 285 300 285 217",
    (
        "cancelled",
        "ready",
    ): "M 810 340 C 810 420 780 420 740 420 L 320 420 C 250 420 262 300 262 217",
}
"""How each arrow runs. One that is not listed runs straight from centre to centre."""

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 440" width="940" height="440"
 role="img">
<title>States of a job</title>
<desc>The states of a job, and an arrow for each transition. The tables of the page on states list
them.</desc>
<style>
svg { background: #fff; color: #1f2328; font: 18px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { background: #0d1117; color: #e6edf3; } }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="currentColor"/></marker></defs>"""


def _arrow(edge: Edge, dashed: bool) -> str:
    (x1, y1), (x2, y2) = PLACES[edge[0]], PLACES[edge[1]]
    path = PATHS.get(edge, f"M {x1} {y1} L {x2} {y2}")
    look = 'opacity="0.45" stroke-dasharray="4 4"' if dashed else 'opacity="0.75"'
    return (
        f'<path d="{path}" fill="none" stroke="currentColor" {look} marker-end="url(#tip)">'
        f"<title>{edge[0]} → {edge[1]}</title></path>"
    )


def _box(state: str, *, active: bool, final: bool) -> str:
    x, y = PLACES[state]
    return (
        f'<rect x="{x - WIDTH // 2}" y="{y - HEIGHT // 2}" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="{HEIGHT // 2 if final else 6}" fill="none" stroke="currentColor" '
        f'stroke-width="{3 if active else 1.5}"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="currentColor">{state}</text>'
    )


def draw_states(edges: Sequence[Edge], *, dashed: Collection[Edge]) -> str:
    """Return the picture: thick boxes hold a slot, round ones are final."""
    from django_tenantqueue.states import ACTIVE, FINAL, State

    arrows = [_arrow(edge, edge in dashed) for edge in edges]
    boxes = [_box(s.value, active=s in ACTIVE, final=s in FINAL) for s in State]
    return "\n".join([HEAD, *arrows, *boxes, "</svg>"])
