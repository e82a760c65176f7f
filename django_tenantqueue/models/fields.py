"""Columns of types that Django has no field for.

Its ArrayField would ask every project to install django.contrib.postgres.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..exceptions import InvalidOption
from ..states import State, state_meant

if TYPE_CHECKING:
    _Field = models.Field[Any, Any]
    _Text = models.TextField[str, str]
    _Char = models.CharField[str, str]
else:
    _Field = models.Field
    _Text = models.TextField
    _Char = models.CharField


class TextListField(_Field):
    """A column of type text[]."""

    description = "List of texts"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "text[]"

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return None if value is None else list(value)

    def value_to_string(self, obj: models.Model) -> Any:
        return self.value_from_object(obj)


class NumberListField(TextListField):
    """A column of type bigint[]."""

    description = "List of numbers"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "bigint[]"


class KeyField(_Text):
    """A text that rows are found by as a whole, in byte order.

    Under the name that Django has for the type it would make a second index, for LIKE.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "character varying"


class StateField(_Char):
    """The state of a job. A query for an unknown state raises an error instead of finding
    nothing."""

    def deconstruct(self) -> Any:
        """Return what migrations write: a CharField."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs

    def get_prep_value(self, value: Any) -> Any:
        """Return the value. Raises InvalidOption for one that is no state."""
        if isinstance(value, str) and value not in State:
            raise InvalidOption(
                f"state={value[:50]!r}: there is no such state{state_meant(value)}: the states are "
                f"{', '.join(State.values)}",
                option="state",
                value=value,
            )
        return super().get_prep_value(value)
