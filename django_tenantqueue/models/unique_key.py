"""Keys of unique jobs: which job a key belongs to, and until when."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from ..calls.unique import MODES
from .fields import KeyField

KEEPING = tuple(mode for mode in MODES if mode.startswith("until_"))
"""Modes whose keys are kept in the table."""


class UniqueKey(models.Model):
    """The job that a key belongs to.

    Written with the enqueue of the job. Its job's row decides whether the key still blocks, so a
    crash leaves none behind.
    """

    key = KeyField(_("key"), primary_key=True, db_collation="C")
    job_id = models.BigIntegerField(_("job"))
    prior_id = models.BigIntegerField(
        null=True, editable=False, help_text=_("The job that held the key before.")
    )
    mode = models.TextField(_("uniqueness"))
    expires_at = models.DateTimeField(_("expires at"), null=True)

    class Meta:
        verbose_name = _("unique key")
        verbose_name_plural = _("unique keys")
        constraints = (
            models.CheckConstraint(
                condition=Q(mode__in=KEEPING), name="tenantqueue_uniquekey_mode"
            ),
            models.CheckConstraint(
                condition=~Q(mode="until_expired") | Q(expires_at__isnull=False),
                name="tenantqueue_uniquekey_expires",
            ),
        )
        indexes = (
            models.Index(
                fields=("expires_at",),
                name="tenantqueue_uniquekey_due",
                condition=Q(expires_at__isnull=False),
            ),
        )
