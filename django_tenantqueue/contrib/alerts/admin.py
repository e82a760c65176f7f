"""Alert rules, and the alerts that they have opened."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _

from ...admin.app_list import Use
from ...admin.base import EmptyList, TenantQueueModelAdmin
from ...admin.confirmation import ask, is_answered
from ...admin.filters import TENANT_FILTERS
from ...admin.formats import NOTHING, badge, badges, duration_text, failure_text, moment, unbroken
from ...admin.links import job_links
from ...admin.live_admin import TunedAdmin
from ...admin.live_forms import SingleTuneForm
from ...admin.mutes import MuteForm, mute_text
from ...admin.tenant_input import tenant_text
from ...exceptions import TenantQueueError
from ...status.masking import MASK
from . import services, watches
from .delivery import enqueue_test
from .models import Alert, AlertRule
from .visible_alerts import rule_of, visible_alerts


class AlertRuleForm(SingleTuneForm):
    """The secret is never shown. An empty input keeps it, a dash removes it."""

    class Meta:
        widgets = {"emails": forms.Textarea({"rows": 2, "cols": 60})}

    webhook_secret = forms.CharField(
        label=_("Signing secret"),
        required=False,
        max_length=200,
        widget=forms.PasswordInput({"autocomplete": "off", "class": "vTextField"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "kind" in self.fields:
            label = self.fields["kind"].label
            self.fields["kind"] = forms.ChoiceField(
                label=label, choices=lambda: [("", "---------"), *watches.kinds()]
            )
        if "webhook_secret" not in self.fields:
            return
        field = self.fields["webhook_secret"]
        field.show_hidden_initial = False
        self.initial["webhook_secret"] = ""
        text = gettext("“whsec_” and 24 to 64 bytes in Base64. Empty: requests are not signed.")
        if getattr(self.instance, "webhook_secret", ""):
            field.widget.attrs["placeholder"] = MASK
            text = gettext("A secret is set. Leave empty to keep it, or enter “-” to remove it.")
        field.help_text = text

    def clean_webhook_secret(self) -> str:
        """Return the secret that the rule will have."""
        given = str(self.cleaned_data["webhook_secret"]).strip()
        return "" if given == "-" else given or str(getattr(self.instance, "webhook_secret", ""))

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if not self.errors and not self.is_switch:
            self.wanted_row().clean()
        return cleaned


class KindFilter(admin.SimpleListFilter):
    title = _("condition")
    parameter_name = column = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return watches.kinds()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


class RuleKindFilter(KindFilter):
    parameter_name = column = "rule__kind"


@admin.register(AlertRule)
class AlertRuleAdmin(TunedAdmin[AlertRule]):
    """Conditions to watch, and the recipients of their alerts."""

    form = AlertRuleForm
    change_form_template = "admin/tenantqueue_alerts/alertrule/change_form.html"
    buttons = {
        "_send_test": "send_test",
        "_mute": "mute_selected",
        "_unmute": "unmute_selected",
    }
    use = Use.AUTOMATION
    export_name = "alert-rules"
    not_exported = ("webhook_url", "webhook_secret")
    empty_list = EmptyList(
        _("There are no alert rules."),
        _("Add one to notify a chat, an e-mail address or the log."),
    )
    list_display = ("title", "now", "limit", "to", "checked", "enabled")
    list_display_links = ("title",)
    list_editable = ("enabled",)
    list_filter = (KindFilter, "enabled", *TENANT_FILTERS)
    search_fields = ("name",)
    search_help_text = _("A part of the name.")
    ordering = ("tenant", "name")
    actions = ("enable_selected", "disable_selected", "mute_selected", "unmute_selected")
    tunable = services.TUNABLE
    add = staticmethod(services.add_alert_rule)
    masked = {"webhook_url": "url_shown", "webhook_secret": "secret_shown"}
    operation = staticmethod(services.tune_alert_rule)
    delete = staticmethod(services.delete_alert_rules)
    readonly_fields = ("now", "muted", "checked", "failure", "created_at")
    fieldsets = (
        (None, {"fields": ("name", "enabled")}),
        (_("Condition"), {"fields": ("kind", ("threshold", "range_minutes"))}),
        (
            _("Scope"),
            {
                "fields": (("tenant", "queue"), "task"),
                "description": _("Rules on sessions and monitors can only name a tenant."),
            },
        ),
        (
            _("Recipients"),
            {"fields": ("webhook_url", "webhook_format", "webhook_secret", "emails", "log")},
        ),
        (
            _("Notifications"),
            {
                "fields": (
                    "notify_resolved",
                    ("repeat_minutes", "max_per_hour"),
                    ("quiet_from", "quiet_until"),
                    "time_zone",
                )
            },
        ),
        (_("Now"), {"fields": ("now", "muted", "checked", "failure", "created_at")}),
    )

    def load(self, rows: Any) -> None:
        """Count the open alerts of each rule, in one statement."""
        ids = [row.pk for row in rows]
        found = Alert.objects.using(self.using).open().filter(rule__in=ids)
        counts = dict(found.order_by().values_list("rule").annotate(Count("pk")))
        for row in rows:
            row.open = counts.get(row.pk, 0)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the rules alone: their alerts need no permission."""
        return [str(obj) for obj in objs], {self.opts.verbose_name_plural: len(objs)}, set(), []

    def send_test(self, request: HttpRequest, rules: QuerySet[AlertRule]) -> None:
        """Enqueue a test message to each recipient of a rule."""
        try:
            with transaction.atomic(using=self.using):
                jobs = enqueue_test(self.using, rules.get())
        except TenantQueueError as error:
            text = gettext("Nothing was enqueued: %s") % error
            self.message_user(request, text, messages.ERROR)
            return
        if not jobs:
            text = gettext("The rule has no recipients: set a webhook, an address or the log.")
            self.message_user(request, text, messages.WARNING)
            return
        links = job_links(self.admin_site, request, jobs)
        text = gettext("Test messages were enqueued. Jobs:")
        self.message_user(request, format_html("{} {}", text, links), messages.SUCCESS)

    @admin.action(permissions=["change"], description=_("Enable selected alert rules"))
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[AlertRule]) -> None:
        self.switch(request, queryset, "enabled", True, services.enable_alert_rules)

    @admin.action(permissions=["change"], description=_("Disable selected alert rules"))
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[AlertRule]) -> None:
        self.switch(request, queryset, "enabled", False, services.disable_alert_rules)

    @admin.action(permissions=["change"], description=_("Mute selected alert rules…"))
    def mute_selected(
        self, request: HttpRequest, queryset: QuerySet[AlertRule]
    ) -> HttpResponse | None:
        form = MuteForm(request.POST if is_answered(request) else None)
        if form.is_valid():
            values = {name: form.cleaned_data[name] for name in ("until", "reason")}
            ids = list(queryset.values_list("pk", flat=True))
            services.mute_alert_rules(ids, using=self.using, **values)
            said = mute_text(values["until"], request.user.get_username(), values["reason"])
            self.message_user(request, gettext("Muted %s") % said, messages.SUCCESS)
            return None
        text = gettext(
            "No message of these rules is sent. Their alerts are still opened, resolved and "
            "listed. Alerts that are open when the time is over are sent then."
        )
        title = gettext("Mute alert rules")
        return ask(self, request, queryset, title=title, text=text, yes=gettext("Mute"), form=form)

    @admin.action(permissions=["change"], description=_("Unmute selected alert rules"))
    def unmute_selected(self, request: HttpRequest, queryset: QuerySet[AlertRule]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        done = len(services.unmute_alert_rules(ids, using=self.using))
        text = ngettext("%d rule is not muted any more.", "%d rules are not muted any more.", done)
        self.message_user(request, text % done, messages.SUCCESS if done else messages.WARNING)

    @admin.display(description=_("alert rule"), ordering="name")
    def title(self, row: AlertRule) -> SafeString:
        tenant = "" if row.tenant is None else tenant_text(row.tenant)
        where = " / ".join(part for part in (tenant, row.queue, row.task) if part)
        text = f"{row.kind_text} · {where or gettext('everywhere')}"
        return format_html("{}<br><small>{}</small>", row.name, text)

    @admin.display(description=_("now"))
    def now(self, row: AlertRule) -> SafeString | str:
        labels = []
        count = getattr(row, "open", 0)
        if count:
            labels.append(badge("error", gettext("%d open") % count))
        if row.last_error:
            labels.append(badge("error", gettext("check failed")))
        if row.is_muted(timezone.now()):
            labels.append(badge("held", gettext("muted")))
        return badges(labels) or NOTHING

    @admin.display(description=_("muted"))
    def muted(self, row: AlertRule) -> str:
        if row.muted_until is None or not row.is_muted(timezone.now()):
            return NOTHING
        return mute_text(row.muted_until, row.muted_by, row.mute_reason)

    @admin.display(description=_("threshold"))
    def limit(self, row: AlertRule) -> str:
        match row.watch and row.watch.unit:
            case "seconds":
                return duration_text(row.least)
            case "percent":
                return f"{row.least:g} %"
            case "number":
                return f"{row.least:,.0f}"
        return NOTHING

    @admin.display(description=_("recipients"))
    def to(self, row: AlertRule) -> str:
        parts = [row.shown_url, ", ".join(row.addresses), gettext("log") if row.log else ""]
        return "; ".join(part for part in parts if part) or NOTHING

    @admin.display(description=_("last check"), ordering="-checked_at")
    def checked(self, row: AlertRule) -> SafeString | str:
        return moment(row.checked_at)

    @admin.display(description=_("error"))
    def failure(self, row: AlertRule) -> SafeString | str:
        return failure_text(row.last_error, row.checked_at)

    @admin.display(description=_("webhook"))
    def url_shown(self, row: AlertRule) -> str:
        return row.shown_url or NOTHING

    @admin.display(description=_("signing secret"))
    def secret_shown(self, row: AlertRule) -> str:
        return MASK if row.webhook_secret else NOTHING


class OpenFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "open"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", pgettext("alert", "open")), ("no", _("resolved"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Alert]) -> QuerySet[Alert]:
        if self.value() in ("yes", "no"):
            return queryset.filter(resolved_at__isnull=self.value() == "yes")
        return queryset


@admin.register(Alert)
class AlertAdmin(TenantQueueModelAdmin[Alert]):
    """Read only."""

    addable = changeable = False
    use = Use.AUTOMATION
    export_name = "alerts"
    refreshes = True
    empty_list = EmptyList(_("There are no alerts."), _("Add a rule to the list of alert rules."))
    list_display = ("state", "label", "text", "rule_link", "opened", "lasted", "told")
    list_display_links = ("label",)
    list_filter = (OpenFilter, RuleKindFilter)
    list_select_related = ("rule",)
    list_per_page = 100
    sortable_by = ()
    fields = ("state", "label", "text", "rule_link", "opened", "lasted", "seen", "told")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Alert]:
        return visible_alerts(request, super().get_queryset(request))

    @admin.display(description=_("state"))
    def state(self, alert: Alert) -> SafeString:
        if alert.resolved_at:
            return badge("held", gettext("resolved"))
        return badge("error", pgettext("alert", "open"))

    @admin.display(description=_("rule"))
    def rule_link(self, alert: Alert) -> str:
        return rule_of(alert)

    @admin.display(description=_("opened"))
    def opened(self, alert: Alert) -> SafeString | str:
        return moment(alert.opened_at)

    @admin.display(description=_("duration"))
    def lasted(self, alert: Alert) -> SafeString:
        end = alert.resolved_at or timezone.now()
        return unbroken(duration_text(end - alert.opened_at))

    @admin.display(description=_("last seen"))
    def seen(self, alert: Alert) -> SafeString | str:
        return moment(alert.seen_at)

    @admin.display(description=_("last notified"))
    def told(self, alert: Alert) -> SafeString | str:
        return moment(alert.notified_at)
