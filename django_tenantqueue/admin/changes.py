"""The list of changes: who changed what, when and from where. Nothing can be set in it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from ..models import Change
from ..models.change import kind_text, models_by_kind
from ..queries.lists import NEWEST
from ..status.display_limits import READ
from ..text import is_storable
from .app_list import Use
from .base import EmptyList, LoadedChangeList, TenantQueueModelAdmin
from .change_text import ids_text, target, values_text
from .filters import TENANT_FILTERS, ExactFilter
from .formats import NOTHING, exact_text, moment, read_number
from .visible import is_limited


class ActorFilter(ExactFilter):
    """Changes of exactly one user."""

    title = _("user")
    parameter_name = column = "actor"


class KindFilter(admin.SimpleListFilter):
    """Changes of objects of one kind."""

    title = _("kind")
    parameter_name = "object_kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind, kind_text(kind)) for kind in models_by_kind()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Change]) -> QuerySet[Change]:
        return queryset.filter(object_kind=self.value()) if self.value() else queryset


class ChangesChangeList(LoadedChangeList):
    """A page of changes that begins below an id. Nothing is counted."""

    older: int | None = None
    """Where the next page begins; None at the end."""
    is_cut: bool = False
    """Whether the page ends where READ ends."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        before = read_number(request.GET.get("before", ""))
        self.before = NEWEST if before is None else before
        super().__init__(request, *args, **kwargs)
        self.title = str(capfirst(self.opts.verbose_name_plural))

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> QuerySet[Change]:
        """Return the changes that the filters leave, the newest first."""
        self.params.pop("before", None)  # another filter begins at the newest change
        self.filter_params.pop("before", None)
        return super().get_queryset(request, exclude_parameters).order_by("-pk")

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page; of several filters the newest READ changes alone."""
        changes = self.queryset.filter(pk__lt=self.before)
        floor = 0
        filters = len(self.get_filters_params()) + bool(self.query) + is_limited(request)
        if filters > 1:
            below = self.root_queryset.filter(pk__lt=self.before).order_by("-pk")
            newest = below.values_list("pk", flat=True).first()
            floor = max(0, (newest or 0) - READ)
            changes = changes.filter(pk__gt=floor)
        found = list(changes[: self.list_per_page + 1])
        self.result_list = found[: self.list_per_page]
        if len(found) > self.list_per_page:
            self.older = found[self.list_per_page - 1].pk
        elif floor and self.root_queryset.filter(pk__lte=floor).exists():
            self.older, self.is_cut = floor + 1, True
        self.result_count = self.full_result_count = len(self.result_list)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = False

    @property
    def newest_link(self) -> str | None:
        """Query string of the first page; None on it."""
        return None if self.before == NEWEST else self.get_query_string()

    @property
    def older_link(self) -> str | None:
        """Query string of the next page; None when there are no older changes."""
        return None if self.older is None else self.get_query_string({"before": str(self.older)})


@admin.register(Change)
class ChangeAdmin(TenantQueueModelAdmin[Change]):
    """Shows changes; their entries are written by the operations alone."""

    addable = changeable = False
    use = Use.SYSTEM
    export_name = "changes"
    change_list_template = "admin/tenantqueue/change/change_list.html"
    empty_list = EmptyList(
        _("Nothing has been changed yet."),
        _("Changes by operators and by code appear here."),
    )
    list_display = ("when", "who", "source", "action", "what", "values")
    list_display_links = ("when",)
    list_filter = (KindFilter, "action", "source", ActorFilter, *TENANT_FILTERS)
    list_per_page = 100
    sortable_by = ()
    search_fields = ("object_label",)
    search_help_text = _("The full name of an object, as shown in the list.")
    fields = ("exactly", "who", "source", "action", "what", "numbers", "tenant", "values")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Change]:
        """Leave out entries about several tenants, none, or the fleet, for limited users."""
        rows = super().get_queryset(request)
        return rows.exclude(tenant="") if is_limited(request) else rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ChangesChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Change], search_term: str
    ) -> tuple[QuerySet[Change], bool]:
        term = search_term.strip()
        if not is_storable(term):
            return queryset.none(), False
        return (queryset.filter(object_label=term) if term else queryset), False

    @admin.display(description=_("when"))
    def when(self, change: Change) -> SafeString | str:
        return moment(change.made_at)

    @admin.display(description=_("when"))
    def exactly(self, change: Change) -> str:
        return exact_text(change.made_at)

    @admin.display(description=_("who"))
    def who(self, change: Change) -> str:
        return change.actor or NOTHING

    @admin.display(description=_("object"))
    def what(self, change: Change) -> SafeString:
        return target(change)

    @admin.display(description=_("numbers"))
    def numbers(self, change: Change) -> str:
        return ids_text(change)

    @admin.display(description=_("change"))
    def values(self, change: Change) -> SafeString | str:
        return values_text(change)
