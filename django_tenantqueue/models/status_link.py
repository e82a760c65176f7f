"""Links to statuses that were revoked."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class StatusLinkRevocation(models.Model):
    """No link that was made before a time opens: of one job, user or tenant, or of all.

    What is empty (0) fits every link, what is given must fit.
    """

    job_id = models.BigIntegerField(_("job"), default=0)
    user = models.CharField(_("user"), max_length=500, blank=True, default="")
    tenant = models.CharField(_("tenant"), max_length=200, blank=True, default="")
    before = models.DateTimeField(_("before"))

    class Meta:
        verbose_name = _("revocation of status links")
        verbose_name_plural = _("revocations of status links")
        constraints = (
            models.UniqueConstraint(
                fields=("job_id", "user", "tenant"), name="tenantqueue_statuslink_unique"
            ),
        )

    def __str__(self) -> str:
        job = f"#{self.job_id}" if self.job_id else ""
        return " / ".join(part for part in (self.tenant, self.user, job) if part) or "*"
