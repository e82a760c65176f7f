"""Stored rows as JSON, for downloads and exports of a tenant, and as the columns of a report."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import JSONField, Model
from django.utils import timezone

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a download: its name, the attribute that it is read by, whether it is JSON."""

    name: str
    attribute: str
    is_json: bool = False


def stored_columns(model: type[Model]) -> list[Column]:
    """Return the columns of a model's table in the order of its fields."""
    return [
        Column(str(field.column), field.attname, isinstance(field, JSONField))
        for field in model._meta.concrete_fields
    ]


def columns_of(row: Model, kind: type[DataclassInstance]) -> dict[str, Any]:
    """Return the columns of a row that a dataclass has, too, by their names."""
    columns = {field.attname for field in row._meta.concrete_fields}
    return {field.name: getattr(row, field.name) for field in fields(kind) if field.name in columns}


def plain(value: Any) -> Any:
    """Return a stored value as JSON can hold it: times in ISO 8601 and UTC, durations in seconds.

    Infinite numbers become their names.
    """
    match value:
        case datetime():
            return (value.astimezone(UTC) if timezone.is_aware(value) else value).isoformat()
        case timedelta():
            return value.total_seconds()
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str() | list() | dict():
            return value
    return str(value)


def json_text(value: Any) -> str:
    """Return a plain value as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def json_rows(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """Return rows as lines of JSON."""
    names = [column.name for column in columns]
    return "".join(f"{json_text(dict(zip(names, map(plain, row), strict=True)))}\n" for row in rows)
