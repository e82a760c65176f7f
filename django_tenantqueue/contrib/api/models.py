"""Tokens of the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ...features import check_installed
from ...models import shared_columns
from ...text import matches
from .settings import MOST_REQUESTS

check_installed(__name__)

LOWEST_NUMBER, HIGHEST_NUMBER = 0, 400
"""Default range of a token: all named priorities, with some room."""


class ApiToken(models.Model):
    """A credential for the HTTP API: of one tenant, of jobs without a tenant, or of every tenant.

    The token itself is not stored: `digest` is its SHA-256 hash. A token has at least 256 random
    bits, so a slow hash would not protect it better.
    """

    in_first_database = True

    class Scope(models.TextChoices):
        """Permissions of a token."""

        READ = "read", _("read jobs, queues, sessions, monitors and schedules")
        SUBMIT = "submit", _("submit, cancel and retry jobs")
        HTTP = "http", _("submit HTTP jobs")
        TUNE = "tune", _("tune queues, sessions, monitors, schedules and waiting jobs")

    name = models.CharField(
        _("name"),
        max_length=200,
        help_text=_("The client that uses this token. Shown in the list of changes."),
    )
    tenant = shared_columns.tenant_scope("", _("Every tenant: each request names its tenant."))
    scopes = models.CharField(_("scopes"), max_length=100)
    """Separated by one space, in the order of Scope."""
    digest = models.CharField(max_length=64, unique=True, editable=False)
    start = models.CharField(_("begins with"), max_length=20, editable=False)
    queues = models.CharField(
        _("queues"),
        max_length=1000,
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Allowed queues, separated by commas. * stands for any text. Empty: existing queues of "
            "the tenant, and those that a task or the settings name."
        ),
    )
    min_priority = models.SmallIntegerField(
        _("priorities from"),
        default=LOWEST_NUMBER,
        db_default=LOWEST_NUMBER,
        help_text=_("Allowed priorities. Lower numbers run first."),
    )
    max_priority = models.SmallIntegerField(
        _("priorities to"), default=HIGHEST_NUMBER, db_default=HIGHEST_NUMBER
    )
    requests_per_minute = models.IntegerField(
        _("requests/min"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_REQUESTS)],
        help_text=_("Maximum. Empty: TENANTQUEUE['API']['REQUESTS_PER_MINUTE']."),
    )
    expires_at = models.DateTimeField(
        _("expires"), null=True, blank=True, help_text=_("Empty: never.")
    )
    revoked_at = models.DateTimeField(_("revoked"), null=True, editable=False)
    last_used_at = models.DateTimeField(_("last use"), null=True, editable=False)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)
    created_by = models.CharField(
        _("created by"), max_length=200, default="", db_default="", editable=False
    )

    class Meta:
        db_table = "tenantqueue_apitoken"
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ("tenant", "name")
        default_permissions = ("add", "change", "view")
        constraints = (
            models.UniqueConstraint(
                fields=("tenant", "name"),
                condition=Q(revoked_at__isnull=True),
                name="tenantqueue_apitoken_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(scopes__regex=r"^(read|submit|http|tune)( (read|submit|http|tune))*$"),
                name="tenantqueue_apitoken_scopes",
            ),
            models.CheckConstraint(
                condition=Q(min_priority__lte=F("max_priority")),
                name="tenantqueue_apitoken_priorities",
            ),
            models.CheckConstraint(
                condition=Q(requests_per_minute__isnull=True) | Q(requests_per_minute__gte=1),
                name="tenantqueue_apitoken_rate",
            ),
        )

    def __str__(self) -> str:
        return f"{shared_columns.scope_label(self.tenant)} / {self.name}"

    @property
    def scope_names(self) -> frozenset[str]:
        return frozenset(self.scopes.split())

    @property
    def queue_patterns(self) -> list[str]:
        """The allowed queues, if limited."""
        return [part.strip() for part in self.queues.split(",") if part.strip()]

    def names_queue(self, name: str) -> bool:
        return any(matches(name, pattern) for pattern in self.queue_patterns)

    def is_valid(self, now: datetime | None = None) -> bool:
        return self.revoked_at is None and (
            self.expires_at is None or self.expires_at > (now or timezone.now())
        )

    def clean(self) -> None:
        """Check that the columns fit together. Raises ValidationError."""
        shared_columns.check_column_moment(self, "expires_at")
        errors: dict[str, Any] = {}
        if not self.pk and not self.is_valid():
            errors["expires_at"] = gettext("It is in the past.")
        unknown = self.scope_names - set(ApiToken.Scope.values)
        if unknown or not self.scope_names:
            errors["scopes"] = gettext("Choose one or more of: %s.") % ", ".join(
                ApiToken.Scope.values
            )
        if self.min_priority > self.max_priority:
            errors["max_priority"] = gettext("The maximum must not be below the minimum.")
        if errors:
            raise ValidationError(errors)


class IdempotencyKey(models.Model):
    """The answer to a request with an `Idempotency-Key`, stored in the request's transaction.

    `digest` is the SHA-256 hash of the request. `status` is NULL only inside that transaction.
    """

    # without a constraint: with contrib.shards the key may be in another database than the token
    token = models.ForeignKey(
        ApiToken, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    key = models.CharField(max_length=255)
    tenant = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64)
    status = models.SmallIntegerField(null=True)
    answer = models.JSONField(null=True, encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenantqueue_idempotencykey"
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=("token", "key"), name="tenantqueue_idempotencykey_unique"
            ),
        )
        indexes = (models.Index(fields=("created_at",), name="tenantqueue_idempotency_due"),)
