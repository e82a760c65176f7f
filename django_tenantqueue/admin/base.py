"""What the admin classes of all models share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext

from ..conf import get_settings
from ..models import Job
from ..queries.lists import NEWEST
from ..status.changes import changes_of
from ..status.display_limits import PAGE
from ..status.stored_rows import Column, stored_columns
from .acting import acting
from .app_list import Use, with_menu
from .change_text import described, only_of
from .export import Table, download, read_pages
from .formats import read_number
from .tenant_input import has_every_tenant, with_choice
from .visible import is_limited, is_of_fleet, only_visible, tenant_of, visible_tenants

_M = TypeVar("_M", bound=Model)
_R = TypeVar("_R", bound=HttpResponse)
HISTORY_PAGE = PAGE * 2
"""Changes that one page of a row's history shows."""
PAGE_PARAMETERS = ("p", "all", "o", "e", "before", "trail")
"""What in the address of a list says where in it the page is, and in which order."""

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin
else:

    class ModelAdmin(admin.ModelAdmin):
        """Takes the type parameter that only the type checker knows of."""

        def __class_getitem__(cls, _model: object) -> type:
            return cls


class EmptyList(NamedTuple):
    """What a list without rows says: that it is empty, and what fills it, with the code for it."""

    title: Any
    hint: Any
    code: str = ""


class LoadedChangeList(ChangeList):
    """A page of a list, with what its admin counts for the rows of the page."""

    def get_filters(self, request: HttpRequest) -> Any:
        """Return the filters; reject other lookups.

        A lookup of a hidden or masked column would reveal its value.
        """
        found = super().get_filters(request)
        if others := found[2]:
            raise DisallowedModelAdminLookup(f"Filtering by {', '.join(others)} not allowed")
        return found

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page, then count for its rows with one bounded statement."""
        super().get_results(request)
        load: Callable[[Sequence[Any]], None] = self.model_admin.load  # type: ignore[attr-defined]
        load(list(self.result_list))


class TenantQueueModelAdmin(ModelAdmin[_M]):
    """Reads from the database of the jobs, and shows the rows that the user may see."""

    use: ClassVar[Use | None] = None
    """The group of menus with the list. None: that of its app."""
    empty_list: ClassVar[EmptyList]
    addable: ClassVar[bool] = True
    """Whether users may add rows in the admin."""
    changeable: ClassVar[bool] = True
    """Whether users may change rows in the admin."""
    delete: ClassVar[Callable[..., Sequence[int]] | None] = None
    """Deletes the rows of some ids: a static method, called with `using`. None: rows stay."""
    tenant_path: ClassVar[str] = "tenant"
    """The tenant of a row, as a queryset names it. See also visible.is_of_fleet()."""
    refreshes: ClassVar[bool] = False
    """Whether the list refreshes itself in a browser."""
    export_name: ClassVar[str]
    """The beginning of the names of downloaded files."""
    not_exported: ClassVar[tuple[str, ...]] = ()
    """Columns that no download has."""
    buttons: ClassVar[Mapping[str, str]] = {}
    """What the buttons of a row's page post -> the action that gets this row."""
    change_list_template = "admin/tenantqueue/change_list.html"
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    class Media:
        css = {"all": ["django_tenantqueue/admin.css"]}

    @property
    def using(self) -> str:
        """Alias of the database of the jobs."""
        return get_settings().database

    def get_queryset(self, request: HttpRequest) -> QuerySet[_M]:
        """Return all rows that the user may see, from the database of the jobs."""
        rows = super().get_queryset(request).using(self.using)
        if is_of_fleet(self.model):
            return rows.none() if is_limited(request) else rows
        return only_visible(request, rows, self.tenant_path)

    def load(self, rows: Sequence[_M]) -> None:
        """Give each row what the page shows of its jobs; by default nothing."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LoadedChangeList

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> _M | None:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            self.load([found])
        return found

    def shown_row(self, request: HttpRequest, object_id: str) -> _M:
        """Return a row that this user may see. Raises PermissionDenied, Http404."""
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        if row is None:
            raise Http404
        return row

    @property
    def list_url(self) -> str:
        """Address of the list without filters."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        return reverse(name, current_app=self.admin_site.name)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        return [path("export/<str:form>/", view, name=name), *super().get_urls()]

    def export_view(self, request: HttpRequest, form: str) -> HttpResponseBase:
        """Send all rows that the filters and the search of the address select."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        asked = request.GET.copy()
        for name in PAGE_PARAMETERS:
            asked.pop(name, None)
        request.GET = asked  # type: ignore[assignment]
        try:
            changelist = self.get_changelist_instance(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(f"{self.list_url}?e=1")  # as the list itself does
        return download(request, self.export_table(changelist), form)

    def export_table(self, changelist: ChangeList) -> Table:
        stored = stored_columns(self.model)
        columns = [column for column in stored if column.name not in self.not_exported]
        rows = changelist.queryset
        if has_every_tenant(self.model):  # CSV has one empty cell for none and for every one
            columns.append(Column("tenant_choice", "tenant_choice"))
            rows = with_choice(rows)
        return Table(self.export_name, columns, read_pages(rows, columns))

    def page(
        self, request: HttpRequest, template: str, title: str, **context: Any
    ) -> TemplateResponse:
        """Return a page of the model that Django has not."""
        request.current_app = self.admin_site.name
        shared = {
            **self.admin_site.each_context(request),
            "title": title,
            "subtitle": None,
            "opts": self.opts,
            "media": self.media,
        }
        page = TemplateResponse(request, template, {**shared, **context})
        return self._with_menu(page)

    def get_form(
        self, request: HttpRequest, obj: _M | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = type(self.form.__name__, (self.form,), self.form_values(request, obj))
        return super().get_form(request, obj, change, **{"form": form, **kwargs})

    def form_values(self, request: HttpRequest, obj: _M | None) -> dict[str, Any]:
        """Return attributes of the form; None for an input that the user does not get."""
        return {"tenants": visible_tenants(request)}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.addable and self._sees(request) and super().has_add_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._sees(request) and super().has_view_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (
            self.changeable and self._sees(request) and super().has_change_permission(request, obj)
        )

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._sees(request) and super().has_module_permission(request)

    def _sees(self, request: HttpRequest) -> bool:
        """Whether the user may see some rows of the model, permissions apart."""
        return not is_of_fleet(self.model) or not is_limited(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_delete = self.delete is not None and self._sees(request)
        return may_delete and super().has_delete_permission(request, obj)

    def delete_model(self, request: HttpRequest, obj: _M) -> None:
        self.delete_queryset(request, self.get_queryset(request).filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[_M]) -> None:
        assert self.delete is not None
        self.delete(queryset.values_list("pk", flat=True), using=self.using)

    def may_view_jobs(self, request: HttpRequest) -> bool:
        """Return whether the user may see jobs, also as parts of other pages."""
        job_admin = self.admin_site._registry.get(Job)
        return bool(job_admin and job_admin.has_view_permission(request))

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, or do what it asks for in the user's name."""
        with acting(request):
            return self._with_menu(super().changelist_view(request, extra_context))

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[_M], *args: Any, **kwargs: Any
    ) -> Any:
        """Do what an action of the list asks for; refuse what no checkbox of it posts."""
        try:
            for text in request.POST.getlist(ACTION_CHECKBOX_NAME):
                self.opts.pk.to_python(text)
        except ValidationError as error:
            raise BadRequest(str(error)) from None
        return super().response_action(request, queryset, *args, **kwargs)

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        action = next((self.buttons[name] for name in self.buttons if name in request.POST), None)
        row = self.get_object(request, unquote(object_id)) if action else None
        if action is None or row is None:
            return super().change_view(request, object_id, *args, **kwargs)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        with acting(request):
            page = getattr(self, action)(request, self.get_queryset(request).filter(pk=row.pk))
        return page or HttpResponseRedirect(request.get_full_path())

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show a row, or compare and save it in one transaction, in the user's name."""
        with acting(request), transaction.atomic(using=self.using):
            return self._with_menu(super().changeform_view(request, *args, **kwargs))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Undo what would give a row to a tenant that the user does not see, whatever the form."""
        super().save_related(request, form, formsets, change)
        row = form.instance
        if is_limited(request) and not self.get_queryset(request).filter(pk=row.pk).exists():
            raise PermissionDenied

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Ask whether to delete a row, or do so in the user's name."""
        with acting(request):
            return self._with_menu(super().delete_view(request, *args, **kwargs))

    def _with_menu(self, response: _R) -> _R:
        return with_menu(response, self.admin_site)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined, no-any-return]
                request, self.opts, object_id
            )
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        before = read_number(request.GET.get("before", ""))
        changes = changes_of(self.using, row, before=before or NEWEST, most=HISTORY_PAGE + 1)
        shown = changes[:HISTORY_PAGE]
        if is_limited(request):
            shown = [only_of(change, row, tenant_of(row)) for change in shown]
        return self.page(
            request,
            "admin/tenantqueue/object_history.html",
            gettext("Change history: %s") % row,
            changes=[described(change) for change in shown],
            older=changes[HISTORY_PAGE - 1].pk if len(changes) > HISTORY_PAGE else None,
            is_newest=before is None,
            module_name=capfirst(self.opts.verbose_name_plural),
            object=row,
            preserved_filters=self.get_preserved_filters(request),
            **(extra_context or {}),
        )

    def log_addition(self, *args: Any, **kwargs: Any) -> Any:
        """Write no LogEntry: the operations record all that is done, from wherever.

        A second entry would be in another transaction, for each row, of the admin alone.
        """

    log_change = log_deletions = log_addition


def jobs_hidden() -> SafeString:
    """Return what a page shows in place of its jobs to those who may not see jobs."""
    text = gettext("You are not allowed to view jobs.")
    return format_html('<span class="tq-quiet">{}</span>', text)
