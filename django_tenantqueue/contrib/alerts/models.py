"""Alert rules, and the alerts that they have opened."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any, Self
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, validate_email
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...exceptions import InvalidArgument, InvalidOption
from ...features import Watch, check_installed
from ...models import shared_columns
from ...webhook_signatures import SECRET_PREFIX, read_secret
from ..http.request import check_url
from ..schedules.recurrence import read_zone
from .waiting import COUNTED_JOBS
from .watches import watched

check_installed(__name__)


class AlertRule(models.Model):
    """A condition to watch, and the recipients of its alerts. Maintenance checks it."""

    class Format(models.TextChoices):
        """Body of the request to a webhook."""

        JSON = "json", _("JSON")
        SLACK = "slack", _("Slack")

    name = models.CharField(_("name"), max_length=200)
    kind = models.CharField(_("alert on"), max_length=50)
    """The code of a condition."""
    threshold = models.FloatField(
        _("threshold"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0), MaxValueValidator(10_000_000.0)],
        help_text=_(
            "Number of waiting or failed jobs, or of a schedule's failures in a row. Percent of "
            "failed runs. Seconds for late queues and schedules, held jobs and queues that no "
            "worker takes. Other conditions have no threshold. Empty: the default."
        ),
    )
    range_minutes = models.IntegerField(
        _("range"),
        default=60,
        db_default=60,
        validators=[MinValueValidator(1), MaxValueValidator(1440)],
        help_text=_("Minutes in which failures and dead workers are counted."),
    )
    tenant = shared_columns.tenant_scope(None)
    queue = models.CharField(
        _("queue"), max_length=100, blank=True, default="", help_text=_("Empty: all.")
    )
    task = models.CharField(
        _("task"), max_length=500, blank=True, default="", help_text=_("Empty: all.")
    )
    webhook_url = models.CharField(
        _("webhook"), max_length=2000, blank=True, default="", help_text=_("https://…")
    )
    webhook_format = models.CharField(
        _("format"), max_length=10, choices=Format.choices, default=Format.JSON
    )
    webhook_secret = models.CharField(
        _("signing secret"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("“whsec_” and 24 to 64 bytes in Base64. Empty: requests are not signed."),
    )
    emails = models.TextField(
        _("e-mail to"), blank=True, default="", help_text=_("Addresses, separated by commas.")
    )
    log = models.BooleanField(
        _("write to the log"),
        default=False,
        db_default=False,
        help_text=_("Logger django_tenantqueue.alerts of the worker that sends the message."),
    )
    notify_resolved = models.BooleanField(_("notify when resolved"), default=True, db_default=True)
    repeat_minutes = models.IntegerField(
        _("repeat after"),
        null=True,
        blank=True,
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(525_600)],
        help_text=_("Minutes until recipients are notified again of an open alert. Empty: once."),
    )
    max_per_hour = models.IntegerField(
        _("messages per hour"),
        default=12,
        db_default=12,
        validators=[MinValueValidator(1), MaxValueValidator(1000)],
        help_text=_("Maximum. The next message says how many alerts were left out."),
    )
    quiet_from = models.TimeField(_("quiet from"), null=True, blank=True)
    quiet_until = models.TimeField(
        _("quiet until"),
        null=True,
        blank=True,
        help_text=_("Alerts that open in quiet hours are sent after them."),
    )
    time_zone = shared_columns.time_zone()
    enabled = models.BooleanField(_("enabled"), default=True, db_default=True)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    next_at = models.DateTimeField(_("next check"), db_default=Now(), editable=False)
    hour_at = models.DateTimeField(null=True, editable=False)
    """When the first message of the counted hour was sent."""
    hour_sent = models.IntegerField(default=0, db_default=0, editable=False)
    left_out = models.IntegerField(default=0, db_default=0, editable=False)
    """Alerts that opened and were resolved while no message was allowed."""
    checked_at = models.DateTimeField(_("last check"), null=True, editable=False)
    last_error = models.TextField(_("error"), default="", db_default="", editable=False)

    class Meta:
        db_table = "tenantqueue_alertrule"
        verbose_name = _("alert rule")
        verbose_name_plural = _("alert rules")
        ordering = ("tenant", "name")
        indexes = (
            models.Index(
                fields=("next_at",), condition=Q(enabled=True), name="tenantqueue_alertrule_due"
            ),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "name"),
                name="tenantqueue_alertrule_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(webhook_format__in=("json", "slack")),
                name="tenantqueue_alertrule_format",
            ),
            models.CheckConstraint(
                condition=Q(threshold__isnull=True) | Q(threshold__gte=0.0),
                name="tenantqueue_alertrule_threshold",
            ),
            models.CheckConstraint(
                condition=Q(range_minutes__gte=1, max_per_hour__gte=1)
                & (Q(repeat_minutes__isnull=True) | Q(repeat_minutes__gte=1)),
                name="tenantqueue_alertrule_times",
            ),
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="tenantqueue_alertrule_quiet",
            ),
        )

    def __str__(self) -> str:
        return f"{shared_columns.scope_label(self.tenant)} / {self.name}"

    @property
    def least(self) -> float:
        """The threshold, or that of the condition; 0 when no installed app has it."""
        if self.threshold is not None:
            return self.threshold
        return 0.0 if self.watch is None else self.watch.least

    @property
    def watch(self) -> Watch | None:
        """How to watch its condition; None: no installed app has it."""
        found = watched().get(self.kind)
        return None if found is None else found[1]

    @property
    def kind_text(self) -> str:
        """The title of its condition."""
        found = watched().get(self.kind)
        return self.kind if found is None else str(found[0].title)

    @property
    def addresses(self) -> list[str]:
        """E-mail addresses of recipients."""
        return [part.strip() for part in self.emails.split(",") if part.strip()]

    @property
    def channels(self) -> list[str]:
        """The channels with a recipient: "webhook", "email", "log"."""
        used = {"webhook": self.webhook_url, "email": self.addresses, "log": self.log}
        return [name for name, is_used in used.items() if is_used]

    @property
    def shown_url(self) -> str:
        """The webhook's URL without its path, which may be secret."""
        if not self.webhook_url:
            return ""
        parts = urlsplit(self.webhook_url)
        return f"{parts.scheme}://{parts.hostname}/…"

    @property
    def signing_key(self) -> bytes:
        """The bytes of the secret."""
        return read_secret(self.webhook_secret)

    def is_quiet(self, now: datetime) -> bool:
        """Return whether a moment is in the quiet hours. Raises InvalidOption for a wrong zone."""
        start, end = self.quiet_from, self.quiet_until
        if start is None or end is None:
            return False
        local: time = now.astimezone(read_zone(self.time_zone)).time()
        return start <= local < end if start <= end else local >= start or local < end

    def clean(self) -> None:
        """Check that the columns fit together. Raises ValidationError."""
        errors: dict[str, Any] = {}
        watch = self.watch
        if watch is None:
            if self.kind:  # else the field says that it is required
                known = ", ".join(watched())
                errors["kind"] = gettext("No installed app has this condition. Known: %s.") % known
        else:
            for name in ("queue", "task"):
                if getattr(self, name) and name not in watch.scopes:
                    errors[name] = gettext("Leave this empty: the condition does not use it.")
            if self.threshold is not None and not watch.unit:
                errors["threshold"] = gettext("Leave this empty: the condition does not use it.")
            if self.tenant is not None and not watch.of_tenants:
                errors["tenant"] = gettext("Choose every tenant: the condition is about the fleet.")
        if self.kind == "queue_backlog" and self.task and self.least >= COUNTED_JOBS:
            text = gettext("With a task, at most %s jobs are counted. Give a lower threshold.")
            errors["threshold"] = text % f"{COUNTED_JOBS:,}"
        if self.webhook_url:
            try:
                check_url(self.webhook_url)
            except InvalidArgument:
                text = gettext("Give an address that begins with https:// or http://.")
                errors["webhook_url"] = text
        if self.webhook_secret:
            try:
                is_long = 24 <= len(self.signing_key) <= 64
            except ValueError:
                is_long = False
            if not is_long or not self.webhook_secret.startswith(SECRET_PREFIX):
                errors["webhook_secret"] = gettext(
                    "Give “whsec_” and 24 to 64 random bytes in Base64."
                )
        try:
            for address in self.addresses:
                validate_email(address)
        except ValidationError as error:
            errors["emails"] = error
        if (self.quiet_from is None) != (self.quiet_until is None):
            errors["quiet_until"] = gettext("Give both times, or none.")
        try:
            read_zone(self.time_zone)
        except InvalidOption as error:
            errors["time_zone"] = str(error)
        if errors:
            raise ValidationError(errors)


class AlertQuerySet(models.QuerySet["Alert"]):
    """Reads of alerts."""

    def open(self) -> Self:
        """Return open alerts."""
        return self.filter(resolved_at__isnull=True)


class Alert(models.Model):
    """Something wrong that a rule has found. Open until a check no longer finds it.

    A rule has at most one open alert of an object. `pending`: a message about it is due.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, verbose_name=_("rule"))
    tenant = models.TextField(default=None, null=True, editable=False)
    """Tenant of the object; "" is no tenant. NULL: every tenant, or the fleet."""
    key = models.TextField(editable=False)
    """Identifies the object in later checks."""
    label = models.TextField(_("object"))
    text = models.TextField(_("what is wrong"))
    opened_at = models.DateTimeField(_("opened"))
    seen_at = models.DateTimeField(_("last seen"))
    resolved_at = models.DateTimeField(_("resolved"), null=True)
    notified_at = models.DateTimeField(_("last notified"), null=True)
    pending = models.BooleanField(_("not notified yet"), default=True)

    objects = AlertQuerySet.as_manager()

    class Meta:
        db_table = "tenantqueue_alert"
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering = ("-id",)
        default_permissions = ("view",)
        indexes = (
            models.Index(
                fields=("rule", "id"), condition=Q(pending=True), name="tenantqueue_alert_pending"
            ),
            models.Index(
                fields=("resolved_at",),
                condition=Q(resolved_at__isnull=False),
                name="tenantqueue_alert_resolved",
            ),
            models.Index(fields=("tenant", "id"), name="tenantqueue_alert_tenant"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("rule", "key"),
                condition=Q(resolved_at__isnull=True),
                name="tenantqueue_alert_open",
            ),
        )

    def __str__(self) -> str:
        return f"{self.label} #{self.pk}"
