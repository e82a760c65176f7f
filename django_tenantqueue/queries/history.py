"""Statements about whole months of the history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import fetch


@dataclass(frozen=True, slots=True)
class Span:
    """The bounds of one month: from `start`, before `end`."""

    start: datetime
    end: datetime


def has_details_of_unfinished(using: str, span: Span) -> bool:
    """Return whether a month has details of a monitor that has not ended."""
    params = {"start": span.start, "end": span.end}
    return bool(fetch(using, "has_details_of_unfinished", params)[0][0])
