"""Problems that operators have muted for a while."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ..features import LONGEST_KEY, LONGEST_NAME
from . import shared_columns


class MuteQuerySet(models.QuerySet["Mute"]):
    """Reads of mutes."""

    def running(self) -> Self:
        """Return those that have not ended."""
        return self.filter(until__gt=Now())


class Mute(models.Model):
    """A condition that pages and commands fold until a time, of one object or of all.

    The row has no effect after `until`. Maintenance deletes it.
    """

    code = models.CharField(_("problem"), max_length=LONGEST_NAME)
    """The code of a condition."""
    tenant = shared_columns.tenant_scope(None)
    name = models.CharField(
        _("object"), max_length=LONGEST_KEY, blank=True, default="", db_default=""
    )
    """Identifies the object, such as a queue. Empty: all objects of the tenant."""
    until = models.DateTimeField(_("muted until"))
    reason = models.TextField(_("reason"))
    actor = models.TextField(_("muted by"), blank=True, default="", db_default="")
    made_at = models.DateTimeField(_("muted"), db_default=Now(), editable=False)

    objects = MuteQuerySet.as_manager()

    class Meta:
        verbose_name = _("muted problem")
        verbose_name_plural = _("muted problems")
        ordering = ("until", "id")
        default_permissions = ("add", "view", "delete")
        constraints = (
            models.UniqueConstraint(
                fields=("code", "tenant", "name"),
                name="tenantqueue_mute_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="tenantqueue_mute_reason"),
        )

    def __str__(self) -> str:
        return f"{shared_columns.scope_label(self.tenant)} / {self.name or '*'}: {self.code}"
