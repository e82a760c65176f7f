"""Reports' results: a table, and which of its columns to draw."""

import time
from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from django.db import connection

from .recording import count

SQL = Path(__file__).resolve().parent / "sql"
YEAR = 2013
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)

Row = tuple[Any, ...]


@cache
def _statement(name: str) -> str:
    return (SQL / f"{name}.sql").read_text(encoding="utf-8")


def query(name: str, **parameters: Any) -> list[Row]:
    """Run sql/<name>.sql and return its rows; add its time and rows to the job's statistics."""
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_statement(name), parameters)
        rows: list[Row] = cursor.fetchall()
    count(
        statements=1,
        rows=len(rows),
        query_ms=round((time.monotonic() - began) * 1000),
    )
    return rows


def period(month: int | None) -> dict[str, date]:
    """Return the first day of a month, or of the year, and the first day after it."""
    if month is None:
        return {"first": date(YEAR, 1, 1), "last": date(YEAR + 1, 1, 1)}
    last = date(YEAR, month + 1, 1) if month < 12 else date(YEAR + 1, 1, 1)
    return {"first": date(YEAR, month, 1), "last": last}


def percent(part: int, whole: int) -> float | None:
    """Return a share in percent; None of nothing."""
    return round(100.0 * part / whole, 1) if whole else None


def mean(total: int, number: int) -> float | None:
    """Return a mean to one decimal; None of nothing."""
    return round(total / number, 1) if number else None


def table(
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Any]],
    *,
    summary: str,
    draw: Sequence[int],
    kind: str = "bars",
) -> dict[str, Any]:
    """Return a result as the page expects it.

    A column is (label, unit); the unit "text" is words, "" a plain number. `draw` are the columns
    drawn over the first one, as "bars" or "lines".
    """
    return {
        "columns": [{"label": label, "unit": unit} for label, unit in columns],
        "rows": [list(row) for row in rows],
        "summary": summary,
        "chart": {"kind": kind, "label": 0, "series": list(draw)},
    }
