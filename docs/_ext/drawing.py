"""Draws boxes, arrows and text as SVG that is readable in a light and in a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH = 600
"""Width of a diagram, so that its smallest text is legible at 420 pixels, too."""
LINE = 19
"""Height of a line of text."""

STYLE = """\
svg { font: 15px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.paper { fill: #ffffff; } text { fill: #1f2328; } .tip { fill: #57606a; }
.small { font-size: 14px; } .quiet { font-size: 14px; fill: #57606a; }
.strong { font-weight: 600; } .title { font-size: 16px; font-weight: 600; }
.new { font-size: 14px; font-weight: 600; fill: #0550ae; }
.line { fill: none; stroke: #57606a; stroke-width: 1.5; }
.rule { fill: none; stroke: #d0d7de; }
rect, circle { stroke-width: 1.5; }
.plain { fill: #f6f8fa; stroke: #8c959f; } .blue { fill: #ddf4ff; stroke: #0969da; }
.green { fill: #dafbe1; stroke: #1a7f37; } .amber { fill: #fff8c5; stroke: #9a6700; }
.red { fill: #ffebe9; stroke: #cf222e; } .empty { fill: none; stroke: #8c959f; }
.dashed { stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } text { fill: #e6edf3; } .tip { fill: #9198a1; }
.quiet { fill: #9198a1; } .new { fill: #79c0ff; } .line { stroke: #9198a1; }
.rule { stroke: #3d444d; } .empty { stroke: #6e7681; }
.plain { fill: #161b22; stroke: #6e7681; } .blue { fill: #0c2d6b; stroke: #58a6ff; }
.green { fill: #033a16; stroke: #3fb950; } .amber { fill: #4b2900; stroke: #d29922; }
.red { fill: #67060c; stroke: #f85149; }
}"""
TIP = """\
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"
 orient="auto"><path class="tip" d="M 0 0 L 8 4 L 0 8 z"/></marker></defs>"""


class Drawing:
    """One diagram. Later parts cover earlier ones."""

    def __init__(self, height: int, *, title: str, about: str, style: str = "") -> None:
        self._height = height
        self._title, self._about = title, about
        self._style = STYLE + style
        self._parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *lines: str,
        look: str = "plain",
        round_by: int = 6,
    ) -> None:
        """Draw a box. The first of its lines is strong; all are in its middle."""
        self._parts.append(
            f'<rect class="{look}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
            f'rx="{round_by}"/>'
        )
        first = y + height / 2 - LINE * (len(lines) - 1) / 2 + 5
        for number, line in enumerate(lines):
            kind = "small" if number else "strong"
            self.text(x + width / 2, first + number * LINE, line, look=kind, anchor="middle")

    def text(
        self, x: float, y: float, *lines: str, look: str = "small", anchor: str = "start"
    ) -> None:
        """Draw lines of text. `y`: the base of the first."""
        for number, line in enumerate(lines):
            where = "" if anchor == "start" else f' text-anchor="{anchor}"'
            self._parts.append(
                f'<text class="{look}" x="{x:g}" y="{y + number * LINE:g}"{where}>'
                f"{escape(line, quote=False)}</text>"
            )

    def dot(self, x: float, y: float, *, look: str, radius: float = 6, text: str = "") -> None:
        """Draw a circle, with a short text in it."""
        self._parts.append(f'<circle class="{look}" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>')
        if text:
            self.text(x, y + 5, text, look="small strong", anchor="middle")

    def line(self, *points: tuple[float, float], look: str = "line", tip: bool = False) -> None:
        """Draw a line through points; `tip`: with the tip of an arrow at its end."""
        path = " ".join(f"{'L' if n else 'M'} {x:g} {y:g}" for n, (x, y) in enumerate(points))
        end = ' marker-end="url(#tip)"' if tip else ""
        self._parts.append(f'<path class="{look}" d="{path}"{end}/>')

    def arrow(self, *points: tuple[float, float]) -> None:
        """Draw an arrow through points."""
        self.line(*points, tip=True)

    def svg(self) -> str:
        """Return the diagram."""
        return "\n".join([*self._head(), *self._parts, "</svg>"]) + "\n"

    def _head(self) -> Sequence[str]:
        size = f'width="{WIDTH}" height="{self._height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height}"',
            f' {size} role="img" aria-labelledby="title about">',
            f'<title id="title">{escape(self._title, quote=False)}</title>',
            f'<desc id="about">{escape(self._about, quote=False)}</desc>',
            f"<style>\n{self._style}\n</style>",
            TIP,
            f'<rect class="paper" {size}/>',
        )
