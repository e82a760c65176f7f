"""Makes pages fit a phone: long names may break, and the cells of wide tables name their columns.

A name may break after a dot or an underscore. The browser breaks at <wbr>, and a copied name has no
such mark. site.css puts the cells of a table of four or more columns one above the other.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

LONG = re.compile(r'<span class="pre">([^<]{24,})</span>')
TABLE = re.compile(r'<table class="docutils.*?</table>', re.DOTALL)
HEADING = re.compile(r'<th class="head[^>]*>(.*?)</th>', re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<td\b")
MANY_COLUMNS = 4


def with_breaks(body: str) -> str:
    """Return the page's HTML with places to break in long names."""

    def broken(name: re.Match[str]) -> str:
        text = re.sub(r"(?<=[\w)])([._])(?=\w)", r"\1<wbr>", name[1])
        return f'<span class="pre long">{text}</span>'

    return LONG.sub(broken, body)


def with_labels(body: str) -> str:
    """Return the page's HTML with the column's name at each cell of tables of many columns."""

    def labelled(table: re.Match[str]) -> str:
        names = [re.sub(r"<[^>]*>", "", text).strip() for text in HEADING.findall(table[0])]
        if len(names) < MANY_COLUMNS:
            return table[0]

        def row(found: re.Match[str]) -> str:
            columns = iter(names)
            return CELL.sub(lambda _: f'<td data-column="{escape(next(columns, ""))}"', found[0])

        wide = table[0].replace('class="docutils', 'class="wide docutils', 1)
        return ROW.sub(row, wide)

    return TABLE.sub(labelled, body)


def mend_page(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Mend the page that is written."""
    if "body" in context:
        context["body"] = with_labels(with_breaks(context["body"]))


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("html-page-context", mend_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
