"""API tokens: created, revoked, and shown without their secrets."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import DateTimeField, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ...admin.app_list import Use
from ...admin.base import EmptyList
from ...admin.confirmation import confirm
from ...admin.filters import TENANT_FILTERS
from ...admin.formats import badge, moment
from ...admin.live_admin import TunedAdmin
from ...admin.live_forms import SingleTuneForm, SplitDateTime
from ...admin.tenant_input import tenant_text
from . import tokens as operations
from .models import ApiToken


class ApiTokenForm(SingleTuneForm):
    """A new token, or the tunable columns of one."""

    anywhere = True
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=ApiToken.Scope.choices,
        initial=[ApiToken.Scope.READ.value, ApiToken.Scope.SUBMIT.value],
        widget=forms.CheckboxSelectMultiple,
    )

    def clean_scopes(self) -> str:
        return operations.ordered_scopes(self.cleaned_data["scopes"])

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.errors:
            return cleaned
        if self.instance.pk is not None:
            self.wanted_row().clean()
        else:
            operations.check_new(ApiToken(**self.cleaned_data))
        return cleaned


class ValidFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("valid", _("valid")), ("expired", _("expired")), ("revoked", _("revoked"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> QuerySet[ApiToken]:
        is_over = Q(expires_at__lte=timezone.now())
        match self.value():
            case "valid":
                return queryset.filter(revoked_at__isnull=True).exclude(is_over)
            case "expired":
                return queryset.filter(is_over, revoked_at__isnull=True)
            case "revoked":
                return queryset.filter(revoked_at__isnull=False)
        return queryset


@admin.register(ApiToken)
class ApiTokenAdmin(TunedAdmin[ApiToken]):
    """A token itself is shown once, when it is created."""

    form = ApiTokenForm
    change_form_template = "admin/tenantqueue_api/apitoken/change_form.html"
    buttons = {"_revoke": "revoke_selected"}
    use = Use.ACCESS
    export_name = "api-tokens"
    not_exported = ("digest",)
    empty_list = EmptyList(
        _("There are no API tokens."),
        _("Add one here, or on the command line:"),
        "python manage.py tenantqueue token create billing --tenant acme --scope submit",
    )
    formfield_overrides = {DateTimeField: {"widget": SplitDateTime}}
    list_display = ("title", "state", "scopes", "used", "expiry", "requests_per_minute")
    list_display_links = ("title",)
    list_editable = ("requests_per_minute",)
    list_filter = (ValidFilter, *TENANT_FILTERS)
    search_fields = ("name", "start")
    search_help_text = _("A part of the name, or the beginning of the token.")
    ordering = ("tenant", "name")
    actions = ("revoke_selected",)
    fixed = ("name", "tenant", "scopes")
    tunable = operations.TUNABLE
    operation = staticmethod(operations.tune_token)
    readonly_fields = ("state", "start", "used", "created_at", "created_by")
    fieldsets = (
        (None, {"fields": ("name", "tenant")}),
        (
            _("Permissions"),
            {
                "fields": (
                    *("scopes", "queues", ("min_priority", "max_priority")),
                    *("requests_per_minute", "expires_at"),
                )
            },
        ),
        (_("Now"), {"fields": ("state", "start", "used", "created_at", "created_by")}),
    )

    def form_values(self, request: HttpRequest, obj: ApiToken | None) -> dict[str, Any]:
        """Return attributes of the form. An existing token shows its scopes as text."""
        values = super().form_values(request, obj)
        return values if obj is None else {**values, "scopes": None}

    def insert(self, row: ApiToken) -> None:
        row.secret = operations.add_token(row, using=self.using)  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the token. No other page does."""
        page = self.page(
            request,
            "admin/tenantqueue_api/apitoken/made.html",
            gettext("API token %s") % obj,
            secret=obj.secret,  # type: ignore[attr-defined]
            list_url=self.list_url,
        )
        page["Cache-Control"] = "no-store"
        return page

    @admin.action(permissions=["change"], description=_("Revoke selected API tokens…"))
    def revoke_selected(
        self, request: HttpRequest, queryset: QuerySet[ApiToken]
    ) -> HttpResponse | None:
        text = gettext("Requests with these tokens will be rejected. This cannot be undone.")
        if page := confirm(self, request, queryset, gettext("Revoke"), text):
            return page
        ids = queryset.values_list("pk", flat=True)
        count = len(operations.revoke_tokens(ids, using=self.using))
        text = ngettext("%d API token was revoked.", "%d API tokens were revoked.", count) % count
        self.message_user(request, text, messages.SUCCESS if count else messages.WARNING)
        return None

    @admin.display(description=_("API token"), ordering="name")
    def title(self, row: ApiToken) -> SafeString:
        whose = tenant_text(row.tenant)
        return format_html("{}<br><small>{} · {}…</small>", row.name, whose, row.start)

    @admin.display(description=_("state"))
    def state(self, row: ApiToken) -> SafeString:
        if row.revoked_at is not None:
            return badge("error", gettext("revoked"))
        return (
            badge("success", gettext("valid"))
            if row.is_valid()
            else badge("held", gettext("expired"))
        )

    @admin.display(description=_("last use"), ordering="-last_used_at")
    def used(self, row: ApiToken) -> SafeString | str:
        return moment(row.last_used_at)

    @admin.display(description=_("expires"), ordering="expires_at")
    def expiry(self, row: ApiToken) -> SafeString | str:
        return moment(row.expires_at)
