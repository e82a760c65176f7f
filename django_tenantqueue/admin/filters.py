"""Filters of the lists. None reads the values that exist: no DISTINCT, no <select> of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..text import is_storable
from .tenant_input import CHOICES, EVERY, NONE, has_every_tenant


class TextFilter(admin.SimpleListFilter):
    """A filter with an input for the exact value."""

    template = "admin/tenantqueue/text_filter.html"
    suggestions: ClassVar[str | None] = None
    """Id of a <datalist> of the page."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of its inputs."""
        return (str(self.parameter_name),)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return []

    def value(self) -> str | None:
        """Return the value as it was typed, since a name may have blanks; None: none."""
        return super().value() or None

    def has_output(self) -> bool:
        return True

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        yield {
            "parameter": self.parameter_name,
            "value": self.value(),
            "suggestions": self.suggestions,
            "clear": changelist.get_query_string({str(self.parameter_name): None}),
            "selected": self.value() is not None,
            "query_string": changelist.get_query_string(),
            "display": self.value() or "",
        }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return all rows: the list reads the value."""
        return queryset


def typed_forms(changelist: ChangeList) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the parameter of each filter with an input, and what the address has beside it."""
    for spec in changelist.filter_specs:
        if isinstance(spec, TextFilter):
            others = [
                (name, value)
                for name, values in changelist.filter_params.items()
                for value in values
                if name not in spec.parameters
            ]
            yield str(spec.parameter_name), others


class ExactFilter(TextFilter):
    """Rows with exactly one value in a column."""

    column = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        if not is_storable(value):
            return queryset.none()
        return queryset.filter(**{self.column: value})


class SetFilter(admin.SimpleListFilter):
    """Rows in which a moment is set, or is not."""

    column = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("Yes")), ("no", _("No"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() not in ("yes", "no"):
            return queryset
        return queryset.filter(**{f"{self.column}__isnull": self.value() == "no"})


class HaltedFilter(SetFilter):
    """Sessions that a failure has halted."""

    title = _("halted")
    parameter_name = "halted"
    column = "halted_at"


class CancelledFilter(SetFilter):
    """Monitors that were cancelled."""

    title = _("cancelled")
    parameter_name = "cancelled"
    column = "cancelled_at"


class QueueNameFilter(ExactFilter):
    """Tenant queues of exactly one name."""

    title = _("queue")
    parameter_name = "queue"
    column = "name"


class TenantFilter(ExactFilter):
    """Rows of exactly one tenant."""

    title = _("tenant")
    parameter_name = column = "tenant"


class TenantChoiceFilter(admin.SimpleListFilter):
    """Rows of no tenant, or of every one where a row may be: a name finds neither."""

    title = _("which tenants")
    parameter_name = "tenant_choice"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        offered = (NONE, EVERY) if has_every_tenant(model_admin.model) else (NONE,)
        return [choice for choice in CHOICES if choice[0] in offered]

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "none":
                return queryset.filter(tenant="")
            case "every":
                return queryset.filter(tenant=None)
        return queryset


TENANT_FILTERS = (TenantFilter, TenantChoiceFilter)
"""The filters of lists of rows with a tenant."""
