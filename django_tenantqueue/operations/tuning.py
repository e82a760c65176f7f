"""Change columns of live rows of any model, and record it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import FloatField, IntegerField, Model, QuerySet
from django.utils.translation import gettext

from ..calls import other_systems
from ..databases import check_home
from ..exceptions import InvalidArgument, InvalidOption
from ..models import Change
from .changes import Edit, merged, record_edits, record_rows

if TYPE_CHECKING:
    from django.db.models import Field


M = TypeVar("M", bound=Model)
Ids = Iterable[int | Model] | int | Model
"""Ids or rows, or a single one."""


def ids_of(rows: Any, model: type[Model]) -> list[int]:
    """Return the ids of rows of a model, given as ids, rows, or a single one; sorted.

    Raises InvalidArgument for anything else.
    """
    noun = model._meta.verbose_name
    if isinstance(rows, int | str | Model) or not isinstance(rows, Iterable):
        rows = [rows]
    found = set()
    for row in rows:
        row_id = row.pk if isinstance(row, model) else row
        if isinstance(row_id, bool) or not isinstance(row_id, int):
            raise InvalidArgument(
                f"{row!r} is not an id or a row ({noun}): give ids or rows, as in [7, 8]"
            )
        found.add(row_id)
    return sorted(found)


def row_of(rows: QuerySet[M], row_id: int | Model) -> M:
    """Return the row of that id, or of a row. Raises its model's DoesNotExist, which names both."""
    (number,) = ids_of(row_id, rows.model)
    row = rows.filter(pk=number).first()
    if row is None:
        raise missing_row(rows.model, number)
    return row


def missing_row(model: type[Model], row_id: int) -> Exception:
    """Return the model's DoesNotExist for an id that no row has."""
    error: Exception = cast("Any", model).DoesNotExist(
        f"there is no {model._meta.verbose_name} {row_id!r}"
    )
    return error


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
    for name in sorted(set(changes) - set(tunable)):
        meant = other_systems.QUEUE.get(name)
        hint = f"use {meant}. It" if meant in tunable else "it"
        raise InvalidOption(f"{name!r} cannot be tuned: {hint} must be one of {tunable}")


@dataclass(frozen=True, slots=True)
class Tuned(Generic[M]):
    """Rows whose columns were written, and the ids of those that have other values now."""

    rows: Sequence[M] = ()
    changed: Sequence[int] = ()


def tune_rows(
    using: str,
    model: type[M],
    ids: Ids,
    changes: Mapping[str, Any],
    tunable: Sequence[str],
) -> Tuned[M]:
    """Lock rows, write columns of them, and record what changed in one entry, in a transaction.

    Nothing is done without changes. Locks the rows in the order of their ids. Raises InvalidOption
    for a column that is not in `tunable`, the model's DoesNotExist, and Django's ValidationError
    for a bad value.
    """
    check_columns(changes, tunable)
    if not changes:
        return Tuned()
    with transaction.atomic(using=using):
        return write_columns(using, lock_rows(using, model, ids), changes)


def lock_rows(using: str, model: type[M], ids: Ids) -> list[M]:
    """Lock rows in the order of their ids, and return them. Raises the model's DoesNotExist."""
    chosen = ids_of(ids, model)
    locked = model._default_manager.using(using).select_for_update(no_key=True)
    rows = list(locked.filter(pk__in=chosen).order_by("pk"))
    if missing := set(chosen) - {row.pk for row in rows}:
        raise missing_row(model, min(missing))
    return rows


def write_columns(using: str, rows: Sequence[M], changes: Mapping[str, Any]) -> Tuned[M]:
    """Write columns of rows that the open transaction has locked, and record what changed.

    Raises Django's ValidationError for a bad value.
    """
    edits = [_written(using, row, changes) for row in rows]
    record_edits(using, rows, edits)
    return Tuned(rows, [row.pk for row, edit in zip(rows, edits, strict=True) if edit.changed()])


def _written(using: str, row: Model, changes: Mapping[str, Any]) -> Edit:
    before = {name: getattr(row, name) for name in changes}
    for name, value in changes.items():
        setattr(row, name, _cleaned(row, name, value))
    row.save(using=using, update_fields=sorted(changes))
    return Edit(before, {name: getattr(row, name) for name in changes})


def _cleaned(row: Model, name: str, value: Any) -> Any:
    """Return a value as the column takes it. Raises Django's ValidationError, with the column."""
    field = cast("Field[Any, Any]", row._meta.get_field(name))
    if isinstance(value, timedelta) and isinstance(field, FloatField):
        value = value.total_seconds()
    try:
        if isinstance(value, bool) and isinstance(field, IntegerField | FloatField):
            raise ValidationError(gettext("Enter a number."))
        if isinstance(value, float):
            if not isfinite(value):
                raise ValidationError(gettext("Enter a number."))
            if isinstance(field, IntegerField) and not value.is_integer():
                raise ValidationError(gettext("Enter a whole number."))
        return field.clean(value, row)
    except ValidationError as error:
        raise ValidationError({name: error.messages}) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ValidationError({name: f"{value!r}: {error}"}) from error


def switch_rows(using: str, rows: QuerySet[M], changes: Mapping[str, Any]) -> list[M]:
    """Set columns of those rows that have other values, and record it, in a transaction.

    Return these rows as they were. Locks them in the order of their ids.
    """
    with transaction.atomic(using=using):
        others = rows.using(using).exclude(**changes).order_by("pk")
        found = list(others.select_for_update(no_key=True))
        chosen = rows.model._default_manager.using(using).filter(pk__in=[row.pk for row in found])
        chosen.update(**changes)
        edits = [Edit({name: getattr(row, name) for name in changes}, changes) for row in found]
        record_edits(using, found, edits)
    return found


def delete_rows(using: str, rows: QuerySet[M], columns: Sequence[str]) -> list[M]:
    """Delete the chosen rows, and record it with these columns, in a transaction.

    Return these rows. Locks them in the order of their ids.
    """
    with transaction.atomic(using=using):
        found = list(rows.using(using).order_by("pk").select_for_update())
        edits = [Edit({name: getattr(row, name) for name in columns}, {}) for row in found]
        record_rows(using, Change.Action.DELETE, found, merged(edits))
        chosen = rows.model._default_manager.using(using).filter(pk__in=[row.pk for row in found])
        chosen.delete()
    return found


def add_row(
    using: str,
    row: Model,
    columns: Sequence[str],
    shown: Mapping[str, Any] | None = None,
    *,
    anywhere: bool = False,
) -> None:
    """Write a new row, and record it with these columns that have a value, in a transaction.

    `shown`: what is recorded in the place of columns with secrets. Raises InvalidOption for a
    tenant whose jobs are in another database, except with `anywhere`.
    """
    if not anywhere:
        check_home(using, getattr(row, "tenant", None))
    with transaction.atomic(using=using):
        row.save(using=using, force_insert=True)
        values = {name: getattr(row, name) for name in columns} | dict(shown or {})
        given = {name: value for name, value in values.items() if value not in (None, "", False)}
        record_rows(using, Change.Action.ADD, [row], Edit({}, given))
