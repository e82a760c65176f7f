"""Draws the core, the hooks, and the apps that use them as SVG."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from html import escape

FLOORS = (
    ("admin/  web/  management/  testing/", "what people and programs use"),
    ("worker/", "supervisor, and children that claim, run, store"),
    ("tasks.py  groups.py  bulk.py", "@task and .delay()"),
    ("operations/", "every change of state"),
    ("status/", "what people read"),
    ("execution/", "one run of a job"),
    ("models/  queries/  calls/", "rows, statements, calls"),
    ("sql/", "one file, one statement"),
    ("features.py", "the hooks"),
)
"""Folders and modules of the core, from above, each with what is in it."""

LEFT, WIDTH, FLOOR = 20, 290, 50
HOOKS, NAMES, ROW = 370, 590, 19
"""Where the list of hooks begins and ends, and the height of its rows."""
COLUMN, TOP = 32, 130

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}"
 role="img">
<title>Core, hooks and apps</title>
<desc>The folders of the core, the hooks of the class Feature, and a dot for each hook that an app
in contrib/ uses.</desc>
<style>
svg {{ background: #fff; color: #1f2328; font: 14px system-ui, sans-serif; }}
@media (prefers-color-scheme: dark) {{ svg {{ background: #0d1117; color: #e6edf3; }} }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="currentColor"/></marker></defs>"""


def hook_groups() -> list[tuple[str, list[str]]]:
    """Return the hooks of features.py by the comments above them."""
    from django_tenantqueue.features import Feature

    groups: list[tuple[str, list[str]]] = [("", ["settings"])]
    for line in inspect.getsource(Feature).splitlines():
        if comment := re.match(r"    # (.+)", line):
            groups.append((comment[1], []))
        elif method := re.match(r"    def (\w+)", line):
            groups[-1][1].append(method[1])
    return groups


def uses(feature: type, hook: str) -> bool:
    """Return whether a feature has this hook of its own."""
    from django_tenantqueue.features import Feature

    return getattr(feature, hook) is not getattr(Feature, hook)


def draw_house(apps: Mapping[str, Sequence[type]]) -> str:
    """Return the picture. `apps`: the features of each app, by its short name."""
    right = NAMES + COLUMN * len(apps) + 44
    table, bottom = _table(apps)
    bottom = max(bottom, TOP + FLOOR * len(FLOORS)) + 20
    return "\n".join(
        [
            HEAD.format(width=right, height=bottom),
            _title(LEFT, "Core: django_tenantqueue"),
            _title(HOOKS, "Hooks: class Feature"),
            _title(NAMES, "Apps: contrib/"),
            *_floors(),
            *_columns(apps),
            *table,
            "</svg>",
        ]
    )


def _title(x: int, text: str) -> str:
    return (
        f'<text x="{x}" y="26" font-size="16" font-weight="bold" fill="currentColor">{text}</text>'
    )


def _floors() -> list[str]:
    parts = []
    for number, (name, text) in enumerate(FLOORS):
        y = TOP - 20 + number * FLOOR
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{FLOOR - 6}" rx="6" fill="none" '
            'stroke="currentColor" stroke-width="1.5"/>'
            f'<text x="{LEFT + 10}" y="{y + 19}" font-weight="bold" fill="currentColor">{name}'
            "</text>"
            f'<text x="{LEFT + 10}" y="{y + 36}" font-size="12" fill="currentColor">{text}</text>'
        )
    y = TOP - 20 + (len(FLOORS) - 1) * FLOOR + 20
    parts.append(
        f'<path d="M {LEFT + WIDTH} {y} L {HOOKS - 8} {y}" fill="none" stroke="currentColor" '
        'marker-end="url(#tip)"><title>The core calls each app through them</title></path>'
    )
    return parts


def _columns(apps: Mapping[str, Sequence[type]]) -> list[str]:
    parts = []
    for number, name in enumerate(apps):
        x = NAMES + number * COLUMN + COLUMN // 2
        parts.append(
            f'<text transform="translate({x + 4} {TOP - 14}) rotate(-60)" '
            f'fill="currentColor">{escape(name)}</text>'
        )
    return parts


def _table(apps: Mapping[str, Sequence[type]]) -> tuple[list[str], int]:
    parts, y = [], TOP
    for group, hooks in hook_groups():
        parts.append(
            f'<path d="M {HOOKS} {y - 12} L {NAMES + COLUMN * len(apps)} {y - 12}" '
            'stroke="currentColor" opacity="0.3"/>'
            f'<text x="{NAMES - 12}" y="{y + 2}" font-size="12" font-style="italic" '
            f'text-anchor="end" fill="currentColor">{group}</text>'
        )
        for hook in hooks:
            parts.append(
                f'<text x="{HOOKS}" y="{y + 3}" font-size="13" fill="currentColor">{hook}</text>'
            )
            for number, (name, features) in enumerate(apps.items()):
                if any(uses(feature, hook) for feature in features):
                    x = NAMES + number * COLUMN + COLUMN // 2
                    parts.append(
                        f'<circle cx="{x}" cy="{y - 2}" r="5" fill="currentColor">'
                        f"<title>{escape(name)} uses {hook}</title></circle>"
                    )
            y += ROW
        y += 5
    return parts, y
