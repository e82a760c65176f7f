"""Columns that operators change on live rows, whichever the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from django.db.models import Model

from ..exceptions import InvalidOption

if TYPE_CHECKING:
    from django.db.models import Field


def check_columns(changes: Mapping[str, Any], tunable: Sequence[str]) -> None:
    """Raise InvalidOption when a column cannot be tuned."""
    unknown = sorted(set(changes) - set(tunable))
    if unknown:
        raise InvalidOption(f"{unknown[0]!r} cannot be tuned: it must be one of {tunable}")


def set_columns(row: Model, changes: Mapping[str, Any]) -> None:
    """Set columns of a row, without saving it. Raises Django's ValidationError for a bad value."""
    for name, value in changes.items():
        field = cast("Field[Any, Any]", row._meta.get_field(name))
        setattr(row, name, field.clean(value, row))
