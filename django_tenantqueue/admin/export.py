"""Downloads of lists, as CSV or JSON lines, made while they are sent."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.utils import timezone

from ..batch_sizes import BATCH, SMALL_BATCH
from ..status.stored_rows import Column, Row, json_rows, json_text, plain

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of cells that spreadsheets take for formulas. The last four are the full-width forms
of the first four."""


@dataclass(frozen=True, slots=True)
class Table:
    """What is downloaded: the beginning of the file's name, the columns, and rows in batches."""

    name: str
    columns: Sequence[Column]
    batches: Iterable[Sequence[Row]]


def read_pages(rows: QuerySet[Any], columns: Sequence[Column]) -> Iterator[list[Row]]:
    """Yield all rows of a queryset in pages by primary key, the newest first."""
    values = rows.order_by("-pk").values_list("pk", *(column.attribute for column in columns))
    page = list(values[:BATCH])
    while page:
        yield [row[1:] for row in page]
        if len(page) < BATCH:
            return
        page = list(values.filter(pk__lt=page[-1][0])[:BATCH])


def read_ids(
    rows: QuerySet[Any], columns: Sequence[Column], pages: Iterable[Sequence[int]]
) -> Iterator[list[Row]]:
    """Yield the rows of a queryset that have these ids, in the order of the ids."""
    values = rows.order_by().values_list("pk", *(column.attribute for column in columns))
    for page in pages:
        for start in range(0, len(page), SMALL_BATCH):
            ids = page[start : start + SMALL_BATCH]
            found = {row[0]: row[1:] for row in values.filter(pk__in=ids)}
            yield [found[i] for i in ids if i in found]


def cell(value: Any, *, is_json: bool = False) -> str:
    """Return a stored value as a cell of CSV, which no spreadsheet takes for a formula."""
    value = plain(value)
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str() if not is_json:
            return f"'{value}" if value.startswith(_FORMULA) else value
    return json_text(value)


def _csv_lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _csv(table: Table) -> Generator[str]:
    yield _csv_lines([[column.name for column in table.columns]])
    for rows in filter(None, table.batches):
        yield _csv_lines(
            [
                cell(value, is_json=column.is_json)
                for column, value in zip(table.columns, row, strict=True)
            ]
            for row in rows
        )


def _json_lines(table: Table) -> Generator[str]:
    for rows in filter(None, table.batches):
        yield json_rows(table.columns, rows)


FORMATS = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "jsonl": ("application/x-ndjson", _json_lines),
}
"""The types of content, and what writes rows, by the ends of files' names."""


def download(request: HttpRequest, table: Table, form: str) -> StreamingHttpResponse:
    """Return a response that reads the rows while it is sent, and stops with its client."""
    if form not in FORMATS:
        raise Http404(f"There is no format {form!r}.")
    content_type, write = FORMATS[form]
    parts = write(table)
    # a server of either kind would collect the other kind of iterator before it sends any of it
    content = _for_asgi(parts) if isinstance(request, ASGIRequest) else parts
    response = StreamingHttpResponse(content, content_type=content_type)
    name = f"{table.name}-{timezone.localdate().isoformat()}.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def _for_asgi(parts: Generator[str]) -> AsyncIterator[str]:
    step = sync_to_async(lambda: next(parts, None))
    try:
        while (part := await step()) is not None:
            yield part
    finally:
        with suppress(ValueError):  # a step that runs is not interrupted: no other follows it
            parts.close()
