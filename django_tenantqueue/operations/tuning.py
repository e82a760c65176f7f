"""Change columns of live rows of any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from django.db.models import Model, QuerySet

from ..exceptions import InvalidOption

if TYPE_CHECKING:
    from django.db.models import Field


M = TypeVar("M", bound=Model)


def row_of(rows: QuerySet[M], row_id: int) -> M:
    """Return the row of that id. Raises its model's DoesNotExist, which names both."""
    row = rows.filter(pk=row_id).first()
    if row is None:
        name = rows.model._meta.verbose_name
        raise cast("Any", rows.model).DoesNotExist(f"there is no {name} {row_id!r}")
    return row


def lock_or_make(rows: QuerySet[M], unique: Sequence[str], values: Mapping[str, Any]) -> M:
    """Return the row whose `unique` columns have these values, made if there is none.

    One statement finds or makes the row and locks it until the end of the open transaction. So a
    deletion comes before or after that, never between.
    """
    made = rows.bulk_create(
        [rows.model(**values)],
        update_conflicts=True,
        unique_fields=unique,
        # to the value that it has: an update locks and returns the row
        update_fields=unique[:1],
    )
    return rows.get(pk=made[0].pk)


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
