"""The page of a tenant: what its jobs do, its rows of all lists, its pause and its erasure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import localize
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ..exceptions import InvalidState
from ..features import Feature, hooks
from ..gate_keys import LIMIT_USER
from ..models import Change, ConcurrentJobMonitor, Job, Session, TenantQueue, UserLimit
from ..operations.erasure import erase_tenant
from ..queries.lists import read_in_order
from ..status.held import users_at_limit
from ..status.overview import Overview
from ..text import is_storable
from .acting import acting
from .base import TenantQueueModelAdmin
from .charts import Tile
from .confirmation import ask, is_answered
from .filters import TenantFilter
from .formats import NOTHING
from .home import context_of, failures_url, tune
from .links import jobs_url, tenant_url
from .row_tables import RowTable, admin_of, row_table
from .tenant_input import NONE
from .visible import is_limited, may, visible_tenants

ERASE_SECONDS = 20.0
"""How long one request erases. The proxies of many sites end a request after 30 s or later."""
STOP_SECONDS = 10.0
"""How long it waits before that for running jobs to stop."""


class EraseForm(forms.Form):
    """Asks for the name of the tenant, so that no other one is erased."""

    name = forms.CharField(
        label=_("Name of the tenant"), strip=False, widget=forms.TextInput({"autocomplete": "off"})
    )
    stop = forms.BooleanField(
        label=_("Ask running jobs to stop"),
        required=False,
        help_text=_("Without this, nothing is erased while jobs of the tenant run."),
    )

    def __init__(self, tenant: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant = tenant

    def clean_name(self) -> str:
        """Reject another name than that of the tenant."""
        name: str = self.cleaned_data["name"]
        if name != self.tenant:
            raise ValidationError(gettext("This is not the name of the tenant."))
        return name


def tenant_view(
    request: HttpRequest, model_admin: TenantQueueModelAdmin[TenantQueue]
) -> HttpResponse:
    """Return the page of the tenant that the address names, or do what it asks for."""
    if not model_admin.has_view_or_change_permission(request):
        raise PermissionDenied
    tenant = request.GET.get("tenant")
    visible = visible_tenants(request)
    if tenant is None or not is_storable(tenant) or (visible is not None and tenant not in visible):
        raise Http404
    if request.method == "POST":
        return _act(request, model_admin, tenant)
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET", "POST"])
    with read_in_order(model_admin.using):
        context = _overview(request, tenant)
        if "live" in request.GET:
            return TemplateResponse(request, "admin/tenantqueue/home.html", context)
        return _page(request, model_admin, tenant, context)


def _overview(request: HttpRequest, tenant: str) -> dict[str, Any]:
    """Return what the dashboard says of this tenant alone."""
    url = reverse("admin:tenantqueue_tenant")
    context = context_of(request, {tenant}, url, tenant)
    context["tiles"] = [_of_tenant(tile, tenant) for tile in context["tiles"]]
    return {**context, "refresh_url": f"{context['url']}&live=1"}


def _of_tenant(tile: Tile, tenant: str) -> Tile:
    """Return a tile that leads to the jobs or failures of the tenant, or nowhere."""
    if tile.url.startswith(jobs_url()):
        return replace(tile, url=f"{tile.url}&{urlencode(filters_of(tenant))}")
    if tenant and tile.url.startswith(failures_url()):
        return replace(tile, url=f"{tile.url}&{urlencode({'tenant': tenant})}")
    return replace(tile, url="")


def filters_of(tenant: str) -> dict[str, str]:
    """Return the filters of a list that select the rows of a tenant."""
    return {"tenant": tenant} if tenant else {"tenant_choice": NONE}


def _page(
    request: HttpRequest,
    model_admin: TenantQueueModelAdmin[TenantQueue],
    tenant: str,
    context: dict[str, Any],
) -> HttpResponse:
    overview: Overview = context["overview"]
    paused = [queue.paused for queue in overview.seen]
    may_change = model_admin.has_change_permission(request)
    filters = filters_of(tenant)
    return model_admin.page(
        request,
        "admin/tenantqueue/tenant.html",
        gettext("Tenant %s") % (tenant or NOTHING),
        **context,
        tenant=tenant,
        num_queues=len(paused),
        may_pause=may_change and not all(paused),
        may_resume=may_change and any(paused),
        may_erase=bool(paused) and _may_erase(request, tenant),
        jobs_url=jobs_url(**filters),
        queues_url=f"{model_admin.list_url}?{urlencode({'q': tenant})}",
        downloads=[
            (form, f"{reverse('admin:tenantqueue_job_export', args=[form])}?{urlencode(filters)}")
            for form in ("jsonl", "csv")
        ],
        sections=list(_sections(request, model_admin, tenant, overview)),
        lists=list(_lists(request, model_admin, tenant)),
    )


def _sections(
    request: HttpRequest,
    model_admin: TenantQueueModelAdmin[TenantQueue],
    tenant: str,
    overview: Overview,
) -> Iterator[RowTable]:
    """Yield the tables of rows of the tenant that the user may see, those with rows."""
    using = model_admin.using
    ids = [queue.id for queue in overview.seen]
    are_held = any(held.gate == LIMIT_USER for held in overview.report.held)
    keys = users_at_limit(using, ids) if are_held else []
    stopped = Q(paused=True) | Q(halted_at__isnull=False)
    wanted: list[tuple[type[Model], Any, object]] = [
        (UserLimit, {"gate_key__in": keys}, _("users at their limit")),
        (Session, Q(stopped, tenant=tenant), _("paused and halted sessions")),
        (ConcurrentJobMonitor, {"tenant": tenant}, None),
    ]
    shown = _in_lists()
    wanted += [
        (model, {lookup: ids if lookup == "queue_id__in" else tenant}, None)
        for model, lookup in _tables_of_features().items()
        if model in shown
    ]
    wanted.append((Change, {"tenant": tenant}, _("recent changes")))
    for model, chosen, title in wanted:
        found = admin_of(request, model_admin.admin_site, model)
        if found is None:
            continue
        rows = found.get_queryset(request).order_by(*found.get_ordering(request) or ("-pk",))
        rows = rows.filter(chosen) if isinstance(chosen, Q) else rows.filter(**chosen)
        query = filters_of(tenant) if TenantFilter in found.list_filter else None
        if section := row_table(request, found, rows, title=title, query=query):
            yield section


def _lists(
    request: HttpRequest, model_admin: TenantQueueModelAdmin[TenantQueue], tenant: str
) -> Iterator[tuple[str, str]]:
    """Yield the title and the address of further lists with rows of the tenant."""
    for model in _tables_of_features():
        found = admin_of(request, model_admin.admin_site, model)
        if found and model not in _in_lists() and TenantFilter in found.list_filter:
            url = f"{found.list_url}?{urlencode(filters_of(tenant))}"
            yield capfirst(str(found.opts.verbose_name_plural)), url


def _tables_of_features() -> dict[type[Model], str]:
    found: dict[type[Model], str] = {}
    for hook in hooks(Feature.tenant_tables):
        found |= hook()
    return found


def _in_lists() -> set[type[Model]]:
    """Return the models of features that are read for the page: rows that can be in trouble."""
    return {model for hook in hooks(Feature.lists) for model in hook().values()}


def _act(
    request: HttpRequest, model_admin: TenantQueueModelAdmin[TenantQueue], tenant: str
) -> HttpResponse:
    page: HttpResponse | None = None
    if "_erase" in request.POST:
        return _erase(request, model_admin, tenant)
    if not model_admin.has_change_permission(request):
        raise PermissionDenied
    if "queue" in request.POST:
        return tune(request, model_admin, request.get_full_path())
    queues: QuerySet[TenantQueue] = model_admin.get_queryset(request).filter(tenant=tenant)
    pressed = next((name for name in model_admin.buttons if name in request.POST), None)
    if pressed is not None:
        with acting(request):
            page = getattr(model_admin, model_admin.buttons[pressed])(request, queues)
    return page or HttpResponseRedirect(request.get_full_path())


def _may_erase(request: HttpRequest, tenant: str) -> bool:
    """Whether the user may erase the tenant: its erasure also changes rows about other tenants."""
    is_allowed = may(request, "delete", TenantQueue) and may(request, "delete", Job)
    return bool(tenant) and is_allowed and not is_limited(request)


def _erase(
    request: HttpRequest, model_admin: TenantQueueModelAdmin[TenantQueue], tenant: str
) -> HttpResponse:
    if not _may_erase(request, tenant):
        raise PermissionDenied
    form = EraseForm(tenant, request.POST if is_answered(request) else None)
    if not form.is_valid():
        return ask(
            model_admin,
            request,
            model_admin.get_queryset(request).filter(tenant=tenant),
            title=gettext("Erase tenant %s?") % tenant,
            text=gettext(
                "All rows of the tenant are deleted permanently: its jobs with their history, its "
                "queues, sessions, limits, monitors, figures and changes, and its rows in other "
                "apps. Its queues are paused and reject new jobs at once. Type the name of the "
                "tenant to continue."
            ),
            yes=gettext("Erase the tenant"),
            sent=[("_erase", "1")],
            form=form,
        )
    until = time.monotonic() + STOP_SECONDS + ERASE_SECONDS
    is_late = False

    def tell(_table: str, _rows: int) -> bool:
        nonlocal is_late
        is_late = time.monotonic() > until
        return is_late

    try:
        with acting(request):
            report = erase_tenant(
                tenant,
                using=model_admin.using,
                stop=form.cleaned_data["stop"],
                wait=STOP_SECONDS,
                tell=tell,
            )
    except InvalidState:
        text = gettext(
            "Nothing was deleted: jobs of the tenant run, or bulk actions that may act on them. "
            "Try again when they have ended."
        )
        if form.cleaned_data["stop"]:
            text += " " + gettext("Until then its queues are paused and reject new jobs.")
        model_admin.message_user(request, text, messages.ERROR)
        return HttpResponseRedirect(tenant_url(tenant))
    rows = localize(sum(report.values()))
    if is_late:
        text = gettext("%s rows were deleted. There are more: erase the tenant again.") % rows
        model_admin.message_user(request, text, messages.WARNING)
        return HttpResponseRedirect(tenant_url(tenant))
    text = gettext("The tenant was erased: %s rows were deleted.") % rows
    model_admin.message_user(request, text, messages.SUCCESS)
    return HttpResponseRedirect(model_admin.list_url)
