"""Reading the plans that EXPLAIN gives as JSON."""

from collections.abc import Iterator
from typing import Any


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a plan and all below it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)
