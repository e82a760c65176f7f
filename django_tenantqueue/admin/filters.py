"""Filters of the lists. None reads the values that exist: no DISTINCT, no <select> of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..text import is_storable


class TextFilter:
    """A filter with an input for the exact value."""

    template = "admin/tenantqueue/text_filter.html"

    def __init__(
        self, title: Any, parameter: str, value: str | None, suggestions: str | None = None
    ) -> None:
        """`suggestions` is the id of a <datalist> of the page."""
        self.suggestions = suggestions
        self.title = title
        self.parameter = parameter
        self.value = value

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:
        """Yield what the template needs, as one choice."""
        yield {
            "parameter": self.parameter,
            "value": self.value,
            "suggestions": self.suggestions,
            "others": [
                (name, value)
                for name, values in changelist.filter_params.items()
                for value in values
                if name != self.parameter
            ],
            "clear": changelist.get_query_string({self.parameter: None}),
        }


class LinkFilter:
    """A filter with a link for each of a fixed set of values."""

    template = "admin/filter.html"

    def __init__(
        self,
        title: Any,
        parameter: str,
        value: str | None,
        values: Callable[[], list[tuple[str | None, Any]]],
    ) -> None:
        """`values` is called when the filter is shown, not for actions."""
        self.title = title
        self.parameter = parameter
        self.value = value
        self.values = values

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:
        """Yield a link for each value."""
        for value, label in self.values():
            yield {
                "selected": value == self.value,
                "query_string": changelist.get_query_string({self.parameter: value}),
                "display": label,
            }


class ExactFilter(admin.ListFilter):
    """Rows with exactly one value in a column."""

    parameter = ""
    column = ""
    template = TextFilter.template

    def __init__(
        self,
        request: HttpRequest,
        params: dict[str, list[str]],
        model: type[Any],
        model_admin: admin.ModelAdmin[Any],
    ) -> None:
        super().__init__(request, params, model, model_admin)
        given = params.pop(self.parameter, [""])[-1].strip()
        self.text = TextFilter(self.title, self.parameter, given or None)

    def has_output(self) -> bool:
        """Return True: there is always an input to show."""
        return True

    def expected_parameters(self) -> list[str | None]:
        """Return the names of the parameters that this filter reads."""
        return [self.parameter]

    def choices(self, changelist: ChangeList) -> Iterator[dict[str, Any]]:
        """Yield what the template needs."""
        return self.text.choices(changelist)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the value."""
        if self.text.value is None:
            return queryset
        if not is_storable(self.text.value):
            return queryset.none()
        return queryset.filter(**{self.column: self.text.value})


class SetFilter(admin.SimpleListFilter):
    """Rows in which a moment is set, or is not."""

    column = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return the choices."""
        return [("yes", _("Yes")), ("no", _("No"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows of the choice."""
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
    parameter = "queue"
    column = "name"


class TenantFilter(ExactFilter):
    """Rows of exactly one tenant."""

    title = _("tenant")
    parameter = column = "tenant"
