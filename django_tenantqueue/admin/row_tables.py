"""Rows of any list of the admin as a table inside another page, with the columns of the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import (
    display_for_field,
    display_for_value,
    label_for_field,
    lookup_field,
)
from django.db.models import Field, Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from ..status.display_limits import LISTED
from .base import TenantQueueModelAdmin
from .formats import NOTHING, table


@dataclass(frozen=True, slots=True)
class RowTable:
    """A part of a page. `url`: the list with the same rows; `more`: the number of rows it stops at,
    if there are others."""

    title: str
    table: SafeString
    url: str
    more: int | None


def admin_of(request: HttpRequest, site: admin.AdminSite, model: type[Model]) -> Any:
    """Return the admin of a model if the user may see its rows; None otherwise."""
    found = site._registry.get(model)
    if not isinstance(found, TenantQueueModelAdmin):
        return None
    return found if found.has_view_or_change_permission(request) else None


def row_table(
    request: HttpRequest,
    model_admin: TenantQueueModelAdmin[Any],
    rows: QuerySet[Any],
    *,
    title: object = None,
    query: Mapping[str, str] | None = None,
) -> RowTable | None:
    """Return the first LISTED of these rows; None without any. `query`: filters of the link."""
    related = model_admin.list_select_related
    if not isinstance(related, bool):
        rows = rows.select_related(*related)
    found = list(rows[: LISTED + 1])
    if not found:
        return None
    shown = found[:LISTED]
    model_admin.load(shown)
    columns: list[Any] = list(model_admin.get_list_display(request))
    links = model_admin.get_list_display_links(request, columns) or ()
    opts = model_admin.opts
    page = f"admin:{opts.app_label}_{opts.model_name}_change"
    lines = []
    for row in shown:
        url = reverse(page, args=[row.pk], current_app=model_admin.admin_site.name)
        cells = ((column, _cell(model_admin, row, column)) for column in columns)
        lines.append(
            [
                format_html('<a href="{}">{}</a>', url, cell) if column in links else cell
                for column, cell in cells
            ]
        )
    labels = [
        capfirst(str(label_for_field(column, model_admin.model, model_admin))) for column in columns
    ]
    return RowTable(
        capfirst(str(title or opts.verbose_name_plural)),
        table(labels, lines),
        f"{model_admin.list_url}?{urlencode(query)}" if query else model_admin.list_url,
        LISTED if len(found) > LISTED else None,
    )


def _cell(model_admin: Any, row: Model, column: str) -> object:
    field, attribute, value = lookup_field(column, row, model_admin)
    if isinstance(field, Field):
        return display_for_field(value, field, NOTHING)
    empty = getattr(attribute, "empty_value_display", NOTHING)
    return display_for_value(value, empty, getattr(attribute, "boolean", False))
