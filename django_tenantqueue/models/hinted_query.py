"""Queries whose errors name the column or the value that is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db import models
from django.db.models import sql

from ..calls import other_systems
from ..exceptions import InvalidOption
from ..states import State, state_meant

M = TypeVar("M", bound=models.Model)
E = TypeVar("E", FieldError, FieldDoesNotExist)


def _wrong_key(value: Any) -> str:
    if not isinstance(value, str) or "/" in value:
        return ""
    return f"the column holds the tenant, too: 'acme/{value}', or '/{value}' without a tenant"


def _wrong_args(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return ""
    return f"the column holds an object: use args={{'args': {list(value)!r}}}"


def _wrong_queue(value: Any) -> str:
    if not isinstance(value, str) or value.isdecimal():
        return ""
    return f"use queue__name={value!r}, or the row of a TenantQueue"


def _wrong_state(value: Any) -> str:
    if not isinstance(value, str) or value.lower() in State:
        return ""
    return f"there is no such state{state_meant(value)}"


_CHECKS: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "Job": {
        "unique_key": _wrong_key,
        "args": _wrong_args,
        "queue": _wrong_queue,
        "state__iexact": _wrong_state,
    }
}
"""By model and lookup: what is wrong with a value that no row can have; "" for others."""


def _kind(opts: Any) -> str:
    return str(opts.concrete_model.__name__)


def _with_hint(error: E, opts: Any, *names: str) -> E:
    """Return the error with what is used in place of the first known one of the names."""
    known = {} if opts is None else other_systems.COLUMNS.get(_kind(opts), {})
    text = str(error)
    for name in names:
        meant = known.get(name.partition("__")[0])
        if meant and "Instead of" not in text:
            text = f"{text}. Instead of {name!r} use {meant}"
    return type(error)(text)


class HintedQuery(sql.Query):
    """A query that says what is meant by another system's column, and refuses hopeless values."""

    def names_to_path(self, names: Any, opts: Any, *args: Any, **kwargs: Any) -> Any:
        """Resolve a name such as `queue__name`; raises FieldError."""
        try:
            return super().names_to_path(names, opts, *args, **kwargs)
        except FieldError as error:
            raise _with_hint(error, opts, "__".join(names)) from None

    def add_fields(self, field_names: Any, *args: Any, **kwargs: Any) -> None:
        """Select the columns of .values(), whose error hides that of names_to_path()."""
        names = list(field_names)
        try:
            super().add_fields(names, *args, **kwargs)
        except FieldError as error:
            raise _with_hint(error, self.model and self.model._meta, *names) from None

    def build_filter(self, filter_expr: Any, *args: Any, **kwargs: Any) -> Any:
        """Build one condition; raises InvalidOption for a value that no row can have."""
        if isinstance(filter_expr, tuple) and self.model is not None:
            name, value = filter_expr
            check = _CHECKS.get(_kind(self.model._meta), {}).get(name)
            if check is not None and (wrong := check(value)):
                said = f"{name}={value!r} is found in no row: {wrong}"
                raise InvalidOption(said, option=name, value=value)
        return super().build_filter(filter_expr, *args, **kwargs)


class HintedQuerySet(models.QuerySet[M]):
    """Rows whose queries are HintedQuery."""

    def __init__(
        self, model: Any = None, query: Any = None, using: str | None = None, hints: Any = None
    ) -> None:
        super().__init__(model, query or HintedQuery(model), using, hints)

    def update(self, **kwargs: Any) -> int:
        """Write columns; raises FieldDoesNotExist."""
        try:
            return super().update(**kwargs)
        except FieldDoesNotExist as error:
            raise _with_hint(error, self.model._meta, *kwargs) from None

    update.alters_data = True  # type: ignore[attr-defined]
