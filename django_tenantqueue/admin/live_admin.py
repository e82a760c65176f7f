"""What the admin classes share whose rows operators tune live, in the list and on a row's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from ..operations.tuning import add_row
from ..status.display_limits import COUNTED_TO
from ..status.task_names import is_known
from .base import TenantQueueModelAdmin
from .confirmation import confirm
from .formats import badge, counted, number, value_text
from .links import tenant_url
from .live_forms import SingleTuneForm, TuneForm, TuneFormSet, column_label
from .tenant_input import tenant_text
from .visible import sees_queues

_M = TypeVar("_M", bound=Model)


def _replaced(name: Any, shown: Mapping[Any, str]) -> Any:
    """Return a field of a fieldset, or a line of several, as a page shows it."""
    if isinstance(name, tuple) and name not in shown:
        return tuple(shown.get(one, one) for one in name)
    return shown.get(name, name)


class TunedAdmin(TenantQueueModelAdmin[_M]):
    """Saves by an operation, changed columns only, and shows conflicts instead of reverting."""

    form = SingleTuneForm  # type: ignore[assignment]
    list_form: ClassVar[type[TuneForm]] = TuneForm
    """The form of a row of the list."""
    tunable: ClassVar[tuple[str, ...]] = ()
    """Columns that are tuned."""
    operation: ClassVar[Callable[..., Sequence[int]]]
    """Writes the named columns of the row of an id: a static method, called with `using`."""
    add: ClassVar[Callable[..., Any] | None] = None
    """Writes a new row, like `operation`. None: the row is written as it is."""
    pause: ClassVar[Callable[..., Sequence[int]]]
    """Pauses the rows of some ids and returns those that it changed: a static method."""
    resume: ClassVar[Callable[..., Sequence[int]]]
    """Resumes the rows of some ids, like `pause`."""
    pause_text: ClassVar[Any]
    """What happens to jobs when rows are paused."""
    tells_pause: ClassVar[bool] = False
    """Whether another column of the list than `paused` says that a row is paused."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Columns that are set when a row is added, and read-only afterwards."""
    masked: ClassVar[Mapping[Any, str]] = {}
    """Columns with secrets -> what is shown in their place where they cannot be edited."""
    refreshes = True
    actions: Sequence[Any] = ("pause_selected", "resume_selected")
    list_per_page = 50
    list_max_show_all = 100

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the columns; those who may not change a row see no yes or no for `paused`."""
        columns = super().get_list_display(request)
        if self.has_change_permission(request):
            return columns
        if self.tells_pause:
            return tuple(column for column in columns if column != "paused")
        return tuple("pause_badge" if column == "paused" else column for column in columns)

    @admin.display(description=_("paused"))
    def pause_badge(self, row: _M) -> SafeString | str:
        return badge("error", gettext("paused")) if getattr(row, "paused", False) else ""

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> _M | None:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            found.may_view_jobs = self.may_view_jobs(request)  # type: ignore[attr-defined]
            found.is_linked = sees_queues(request)  # type: ignore[attr-defined]
        return found

    def get_fieldsets(self, request: HttpRequest, obj: _M | None = None) -> Any:
        """Return the parts of the form. The last part shows counts: a new row has none."""
        assert self.fieldsets is not None
        parts = self.fieldsets if obj else self.fieldsets[:-1]
        shown = self._shown_instead(request, obj)
        return [
            (label, {**part, "fields": [_replaced(name, shown) for name in part["fields"]]})
            for label, part in parts
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: _M | None = None) -> Any:
        shown = self._shown_instead(request, obj)
        return (*(self.fixed if obj else ()), *self.readonly_fields, *shown.values())

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Keep blanks around tenants, names and keys, as `.delay()` does."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(field, forms.CharField) and db_field.name in self.fixed:
            field.strip = False
        return field

    def _shown_instead(self, request: HttpRequest, obj: _M | None) -> dict[Any, str]:
        """Return what a page shows instead of columns that cannot be edited."""
        may_edit = self.may_edit(request, obj)
        shown = {} if may_edit else dict(self.masked)
        fixed = (*self.fixed, *self.readonly_fields)
        if obj is not None and ("tenant" in fixed or not may_edit) and hasattr(obj, "tenant"):
            shown["tenant"] = "tenant_shown"
        return shown

    @admin.display(description=_("tenant"))
    def tenant_shown(self, row: _M) -> SafeString | str:
        tenant: str | None = getattr(row, "tenant", "")
        if tenant is None or not getattr(row, "is_linked", False):
            return tenant_text(tenant)
        return format_html('<a href="{}">{}</a>', tenant_url(tenant), tenant_text(tenant))

    def may_edit(self, request: HttpRequest, obj: _M | None) -> bool:
        """Return whether the form of a row has inputs for all that can be tuned."""
        return obj is None or self.has_change_permission(request, obj)

    def insert(self, row: _M) -> None:
        """Write a new row."""
        if self.add is None:
            add_row(self.using, row, self.tunable)
        else:
            self.add(row, using=self.using)

    def form_values(self, request: HttpRequest, obj: _M | None) -> dict[str, Any]:
        masked = {} if self.may_edit(request, obj) else dict.fromkeys(self.masked)
        return {"tunable": self.tunable, **masked, **super().form_values(request, obj)}

    def get_changelist_form(self, request: HttpRequest, **kwargs: Any) -> Any:
        form = type("TuneListForm", (self.list_form,), {"tunable": self.tunable})
        return super().get_changelist_form(request, **{"form": form, **kwargs})

    def get_changelist_formset(self, request: HttpRequest, **kwargs: Any) -> Any:
        return super().get_changelist_formset(request, formset=TuneFormSet, **kwargs)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        with transaction.atomic(using=self.using):
            return super().changelist_view(request, extra_context)

    def save_model(self, request: HttpRequest, obj: _M, form: Any, change: bool) -> None:
        if change:
            values = {name: new for name, (_old, new) in form.changes.items()}
            self.operation(obj.pk, using=self.using, **values)
        else:
            self.insert(obj)

    def warn_of_unknown(self, request: HttpRequest, task: str) -> None:
        """Say so when nothing is known by the name of a task."""
        if not is_known(self.using, task):
            text = gettext("No task, method or finished job is named “%s”. Check the spelling.")
            self.message_user(request, text % task, messages.WARNING)

    def switch(
        self,
        request: HttpRequest,
        queryset: QuerySet[_M],
        column: str,
        value: bool,
        operation: Callable[..., Sequence[int]],
    ) -> None:
        """Set a yes/no column of the chosen rows by an operation, and say what became of it."""
        chosen = queryset.count()
        ids = list(queryset.filter(**{column: not value}).values_list("pk", flat=True))
        changed = len(operation(ids, using=self.using))
        label = column_label(self.model, column)
        text = f"{label} {value_text(not value)} → {value_text(value)}"
        options = self.model._meta
        note = ngettext("%(count)d %(one)s changed", "%(count)d %(many)s changed", changed) % {
            "count": changed,
            "one": options.verbose_name,
            "many": options.verbose_name_plural,
        }
        if chosen > changed:
            already = chosen - changed
            note += ngettext("; %d unchanged", "; %d unchanged", already) % already
        level = messages.SUCCESS if changed else messages.WARNING
        self.message_user(request, f"{note}: {text}.", level)

    @admin.action(permissions=["change"], description=_("Pause selected %(verbose_name_plural)s…"))
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[_M]) -> HttpResponse | None:
        if page := confirm(self, request, queryset, gettext("Pause"), str(self.pause_text)):
            return page
        self.switch(request, queryset, "paused", True, self.pause)
        return None

    @admin.action(permissions=["change"], description=_("Resume selected %(verbose_name_plural)s"))
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[_M]) -> None:
        self.switch(request, queryset, "paused", False, self.resume)


class LinedAdmin(TunedAdmin[_M]):
    """Rows that let some jobs through and hold others in a line. `load` of a row counts both."""

    tells_pause = True

    def troubles(self, row: Any) -> list[SafeString]:
        """Return labels for what holds the jobs of a row with slots; none for a healthy one."""
        load, labels = row.load, []
        if row.paused:
            labels.append(badge("error" if load.line else "held", gettext("paused")))
        if row.num_slots == 0:
            labels.append(badge("error" if load.line else "held", gettext("no slots")))
        elif row.num_slots and load.inside >= row.num_slots and load.line:
            labels.append(badge("scheduled", gettext("full")))
        return labels

    @admin.display(description=pgettext_lazy("jobs", "active"))
    def inside(self, row: Any) -> SafeString:
        return number(counted(row.load.inside, COUNTED_TO))

    @admin.display(description=_("held"))
    def line(self, row: Any) -> SafeString:
        return number(counted(row.load.line, COUNTED_TO))
