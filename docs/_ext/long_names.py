"""Lets a long name break after a dot or an underscore, so that it fits into a column or a phone.

The browser breaks at <wbr>, and a copied name has no such mark.
"""

from __future__ import annotations

import re
from typing import Any

LONG = re.compile(r'<span class="pre">([^<]{24,})</span>')


def with_breaks(body: str) -> str:
    """Return the page's HTML with places to break in long names."""

    def broken(name: re.Match[str]) -> str:
        text = re.sub(r"(?<=[\w)])([._])(?=\w)", r"\1<wbr>", name[1])
        return f'<span class="pre long">{text}</span>'

    return LONG.sub(broken, body)


def mend_page(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Mend the page that is written."""
    if "body" in context:
        context["body"] = with_breaks(context["body"])


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("html-page-context", mend_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
